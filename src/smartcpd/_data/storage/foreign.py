"""Sparse arrays of other packages: SciPy, pydata ``sparse``, pyttb."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd.errors import InvalidDataError


def coordinates(X: Any) -> tuple[tuple[np.ndarray, ...], np.ndarray, tuple[int, ...]]:
    """Return one array of indices a mode, the values, and the shape of a sparse array."""
    if type(X).__module__.startswith("pyttb"):
        # An sptensor keeps its values as a column; one without nonzeros has no columns at all.
        subs = np.asarray(X.subs).reshape(-1, len(X.shape))
        return tuple(subs.T), np.asarray(X.vals).reshape(-1), X.shape
    _check_pointers(X)
    coo = X.tocoo() if hasattr(X, "tocoo") else X
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    if np.any(getattr(coo, "fill_value", 0) != 0):
        raise InvalidDataError(
            f"X has fill_value={coo.fill_value!r}; cells that are not stored must be 0. "
            "Subtract it first, or pass X.todense()."
        )
    return tuple(coords), coo.data, coo.shape


def _check_pointers(X: Any) -> None:
    """Raise an error unless the pointers of a compressed sparse array lie within its indices.

    SciPy and pydata follow them without looking when they turn such an array into a list of cells.
    """
    pointers = getattr(X, "indptr", None)
    if pointers is None:
        return
    starts, count = np.asarray(pointers), len(X.indices)
    rising = (
        starts.ndim == 1 and starts.dtype.kind in "iu" and bool((starts[1:] >= starts[:-1]).all())
    )
    if not rising or (starts.size and (starts[0] != 0 or starts[-1] > count)):
        raise InvalidDataError(
            f"The pointers (indptr) of X, {type(X).__name__} of shape {X.shape}, do not rise from "
            f"0 to its {count:,} indices: it is damaged. Make or fetch it again."
        )
