"""Weights of the cells of a dense array, 0 for those that were not observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd.errors import InvalidDataError, InvalidParameterError

LARGE = 1e20


def observed_weights(
    array: np.ndarray, hidden: np.ndarray | None, mask: Any, weights: Any
) -> np.ndarray | None:
    """A weight for every cell, 0 where it is missing; None where all cells count the same.

    A cell is missing if it is NaN, where ``hidden`` (the mask of a masked array) is true, where
    ``mask`` is false and where ``weights`` are 0. What the user gave is not copied unless several
    of these say something.
    """
    parts = [] if hidden is None else [~hidden]
    if mask is not None:
        parts.append(_checked_mask(mask, array.shape))
    if _has_nan(array):
        parts.append(~np.isnan(array))
    parts = [part for part in parts if not part.all()]
    observed = parts[0] if parts else None
    for part in parts[1:]:
        observed = observed & part
    if weights is None:
        if observed is not None and not observed.any():
            raise InvalidDataError(f"X has no observed cell: all {array.size:,} are missing.")
        return observed
    return _combined(_checked_weights(weights, array.shape), observed)


def block_weights(array: np.ndarray, mask: Any, weights: Any) -> np.ndarray | None:
    """Return weights for a part of a larger array like `observed_weights`: weights that are the
    same in all of it stay, since they may differ elsewhere, and a part of which nothing was
    observed is no error.
    """
    observed = None if mask is None else _checked_mask(mask, array.shape)
    if _has_nan(array):
        known = ~np.isnan(array)
        observed = known if observed is None else observed & known
    if weights is None:
        return None if observed is None or observed.all() else observed
    own = _checked_weights(weights, array.shape)
    return own if observed is None else np.where(observed, own, own.dtype.type(0))


def _has_nan(array: np.ndarray) -> bool:
    """Whether the minimum is NaN, which it is if any cell is; nothing of the array's size is
    made.
    """
    if array.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(array.min()))


def _combined(weights: np.ndarray, observed: np.ndarray | None) -> np.ndarray | None:
    if observed is not None:
        weights = np.where(observed, weights, weights.dtype.type(0))
    low, high = weights.min(), weights.max()
    if high == 0:
        raise InvalidDataError(
            "X has no observed cell: every weight is zero, or its cell is missing."
        )
    if low == high:
        return None
    # Their scale changes no mean, but single precision would lose tiny or huge ones.
    return weights if 1 / LARGE < high < LARGE else weights.astype(np.float64) / high


def _checked_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.asarray(mask)
    if found.shape != shape:
        raise InvalidParameterError(
            f"mask has shape {found.shape}, X {shape}; it needs one truth value for each cell, "
            "True where the cell was observed."
        )
    if found.dtype.kind in "iu" and np.isin(found, (0, 1)).all():
        found = found.astype(bool)
    if found.dtype != bool:
        raise InvalidParameterError(
            f"mask must be boolean, True where a cell was observed; got dtype {found.dtype}. "
            "Numbers that say how much cells count are weights=..."
        )
    return found


def _checked_weights(weights: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.asarray(weights)
    if found.dtype.kind not in "buif":
        raise InvalidParameterError(f"weights must be numbers; got dtype {found.dtype}.")
    try:
        found = np.broadcast_to(found, shape)
    except ValueError:
        raise InvalidParameterError(
            f"weights have shape {found.shape}, X {shape}; they need one number for each cell, or "
            "for each row of a mode in a shape that broadcasts, such as "
            f"weights.reshape({', '.join(['-1'] + ['1'] * (len(shape) - 1))}) for mode 0."
        ) from None
    native = found.dtype.newbyteorder("=")
    if found.dtype.kind == "f" and found.dtype.itemsize > 8:
        native = np.dtype(np.float64)
    found = found.astype(native, copy=False)
    check_weights(found)
    return found


def slice_weights(sample_weight: Any, weights: Any, X: Any) -> Any:
    """Return weights of cells from those of the slices of mode 0, times those of cells if there are
    any."""
    if sample_weight is None:
        return weights
    given = np.asarray(sample_weight)
    shape = tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)
    if given.ndim == 0:
        given = np.full(shape[0], given)
    if given.ndim != 1 or len(given) != shape[0]:
        # scikit-learn's common checks expect its wording for what is no list.
        flat = "Sample weights must be 1D array or scalar. " if given.ndim > 1 else ""
        raise InvalidParameterError(
            f"{flat}sample_weight has shape {given.shape}; it needs one number for each of the "
            f"{shape[0]} slices of mode 0."
        )
    spread = given.reshape(-1, *[1] * (len(shape) - 1))
    return spread if weights is None else spread * np.asarray(weights)


def check_weights(weights: np.ndarray) -> None:
    """Raise an error that names the first weight that is not allowed."""
    if weights.size == 0 or (weights.min() >= 0 and weights.max() < np.inf):
        return  # NaN fails the first comparison
    bad = ~((weights >= 0) & (weights < np.inf))
    cell = np.unravel_index(int(np.argmax(bad)), weights.shape)
    raise InvalidParameterError(
        f"weights[{', '.join(str(int(i)) for i in cell)}] is {weights[cell]!s}; weights must be "
        "finite and not negative. A cell of weight 0 is missing."
    )
