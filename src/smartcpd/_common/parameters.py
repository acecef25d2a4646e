"""Parameters as users give them: numbers that make sense, and one choice for each mode."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping
from typing import Any

from smartcpd.errors import InvalidParameterError


def check_integer(name: str, value: Any, at_least: int) -> None:
    """Raise an error unless the value is a whole number, and not below the least."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < at_least:
        raise InvalidParameterError(
            f"{name} must be a whole number of at least {at_least}; got {value!r}."
        )


def check_number(name: str, value: Any, at_least: float) -> None:
    """Raise an error unless the value is a finite number, and not below the least."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not at_least <= float(value) < math.inf:
        raise InvalidParameterError(
            f"{name} must be a finite number of at least {at_least:g}; got {value!r}."
        )


def by_mode(kind: str, choice: Any, order: int) -> list[Any]:
    """Return one choice for each mode, from a single one, a sequence, or a mapping from modes."""
    if isinstance(choice, Mapping):
        for mode in choice:
            if not isinstance(mode, numbers.Integral) or not 0 <= int(mode) < order:
                raise InvalidParameterError(
                    f"{kind} names mode {mode!r}, but the modes of X are 0 to {order - 1}."
                )
        return [choice.get(mode, "auto") for mode in range(order)]
    if isinstance(choice, list | tuple):
        if len(choice) != order:
            raise InvalidParameterError(
                f"{kind} lists {len(choice)} choices, but X has {order} modes. Give one for each "
                'mode, a single one for all, or a dict such as {0: "..."}.'
            )
        return list(choice)
    return [choice] * order


def checked_jobs(n_jobs: Any) -> int:
    """Return how many jobs run at a time."""
    if not isinstance(n_jobs, int) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InvalidParameterError(
            f"n_jobs must be a whole number other than 0; -1 for all cores; got {n_jobs!r}."
        )
    return n_jobs if n_jobs > 0 else (os.cpu_count() or 1)
