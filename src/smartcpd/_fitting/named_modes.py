"""Parameters that name modes, with numbers in place of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._problem.shared import listed_groups
from smartcpd.errors import IncompatibleError, InvalidParameterError


def by_number(name: str, given: Any, modes: tuple[Mode, ...] | None) -> Any:
    """Return a dict from modes, such as that of known factors, with the numbers of its modes."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidParameterError(
            f"{name} must be a dict from modes to arrays, such as {{0: A}}; got "
            f"{type(given).__name__}."
        )
    numbers = _numbers(modes)
    return {numbers.get(mode, mode): value for mode, value in given.items()}


def groups_by_number(same: Any, modes: tuple[Mode, ...] | None) -> Any:
    """Return groups of modes that share a factor, by number; their labels must be the same."""
    numbers = _numbers(modes)
    groups = [tuple(numbers.get(mode, mode) for mode in group) for group in listed_groups(same)]
    for group in groups:
        places = [n for n in group if isinstance(n, int) and modes and 0 <= n < len(modes)]
        for n in places[1:]:
            _check_labels(modes[places[0]], modes[n])  # type: ignore[index]
    return groups


def _numbers(modes: tuple[Mode, ...] | None) -> dict[Any, int]:
    return {mode.name: n for n, mode in enumerate(modes or ())}


def _check_labels(one: Mode, other: Mode) -> None:
    if len(one) != len(other) or np.array_equal(one.labels, other.labels):
        return  # unequal lengths are refused for data without labels, too
    row = int(np.flatnonzero(one.labels != other.labels)[0])
    raise IncompatibleError(
        f"Modes '{one.name}' and '{other.name}' share a factor, so that their rows must be the "
        f"same things in the same order; row {row} is {one.labels[row]!s} in one and "
        f"{other.labels[row]!s} in the other. Give both all labels, in one order."
    )
