"""What is known of a model before it is fitted, as bounds that leave no choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smartcpd.constraints import Constraint, EntryBounds
from smartcpd.errors import IncompatibleError, InvalidParameterError


def with_known(
    chosen: Sequence[Constraint],
    shape: tuple[int, ...],
    rank: int,
    fixed: Mapping[int, Any] | None,
    components: Sequence[Any] | None,
) -> tuple[Constraint, ...]:
    """Return the constraints with known factors and known components as bounds on entries.

    Parameters
    ----------
    chosen : sequence of Constraint
        One for each mode.
    shape, rank
        Those of the model.
    fixed : mapping from modes to factors, optional
        Factors that are known as a whole.
    components : list of factors, optional
        The columns that are known in every mode; they become the first columns of the model.
    """
    for mode in fixed or {}:
        if not isinstance(mode, int | np.integer) or not 0 <= mode < len(shape):
            raise InvalidParameterError(
                f"fixed names mode {mode!r}, but the modes of X are 0 to {len(shape) - 1}."
            )
    columns = _checked_components(components, shape, rank)
    found = []
    for mode, constraint in enumerate(chosen):
        rule = constraint
        size = (shape[mode], rank)
        if columns is not None:
            rule = _begun_with(columns[mode], constraint, size, mode)
        if fixed is not None and mode in fixed:
            known = _checked_factor(fixed[mode], size, mode)
            rule = EntryBounds(known, known)
        found.append(rule.of_shape(size, mode) if isinstance(rule, EntryBounds) else rule)
    return tuple(found)


def _checked_factor(A: Any, size: tuple[int, int], mode: int) -> np.ndarray:
    known = np.asarray(A, dtype=np.float64)
    if known.shape != size:
        raise InvalidParameterError(
            f"fixed[{mode}] has shape {known.shape}; the factor of mode {mode} has {size[0]} rows "
            f"and {size[1]} columns."
        )
    if not np.isfinite(known).all():
        raise InvalidParameterError(f"fixed[{mode}] holds NaN or infinity; it must be finite.")
    return known


def _checked_components(
    components: Sequence[Any] | None, shape: tuple[int, ...], rank: int
) -> list[np.ndarray] | None:
    if components is None:
        return None
    known = [np.asarray(A, dtype=np.float64) for A in components]
    lengths = tuple(len(A) for A in known)
    widths = {A.shape[1] if A.ndim == 2 else -1 for A in known}
    if lengths != shape or len(widths) != 1 or not 1 <= min(widths) <= rank:
        raise InvalidParameterError(
            f"fixed_components has factors of shapes {[A.shape for A in known]}; X has shape "
            f"{shape}, and there can be at most rank={rank} known components."
        )
    if not all(np.isfinite(A).all() for A in known):
        raise InvalidParameterError("fixed_components holds NaN or infinity; it must be finite.")
    return known


def _begun_with(
    known: np.ndarray, constraint: Constraint, size: tuple[int, int], mode: int
) -> EntryBounds:
    """Bounds that hold the first columns where they are, and the others where they were held."""
    if isinstance(constraint, EntryBounds):
        rule = constraint.of_shape(size, mode)
        low, high = rule.low.copy(), rule.high.copy()
    elif constraint.bounds is not None:
        low, high = (np.full(size, end) for end in constraint.bounds)
    else:
        raise IncompatibleError(
            f"Known components need constraints on single entries (free, nonnegative, box); got "
            f"'{constraint}' for mode {mode}. Use constraint='nonnegative' there."
        )
    low[:, : known.shape[1]] = high[:, : known.shape[1]] = known
    return EntryBounds(low, high)
