"""What a background is, and which one a problem gets."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from smartcpd.losses import Loss

EXHAUSTIVE_CELLS = 1 << 25
"""Up to this many cells, passing over all of them takes less than about a second."""


class Sum(NamedTuple):
    """A sum of losses over cells, its gradient (stacked like the factors) and its uncertainty."""

    total: float
    gradient: np.ndarray
    variance: float = 0.0


class Background(Protocol):
    """The sum of l(0, m) over all cells."""

    def sum(self, A: np.ndarray, want_gradient: bool) -> Sum: ...


def choose(
    loss: Loss, shape: tuple[int, ...], n_threads: int, A: np.ndarray, exact: bool = True
) -> Background:
    """The cheapest background that is exact, or as near as makes no difference, at the factors A.

    With ``exact=False`` the few cells that matter, or a sample, may stand for all of them in
    tensors that could also be passed over.
    """
    from smartcpd._objectives import backgrounds

    if loss.background is not None:
        return backgrounds.ClosedForm(loss.background, shape)
    n_cells = math.prod(shape)
    if n_cells <= (EXHAUSTIVE_CELLS if exact else EXHAUSTIVE_CELLS >> 6):
        return backgrounds.Exhaustive(loss, shape, n_threads)
    if loss.taylor_at_zero is not None and A.min() >= 0:
        hot = backgrounds.HotCells.of(loss, shape, n_threads, A)
        if hot is not None:
            return hot
    if n_cells <= EXHAUSTIVE_CELLS:
        return backgrounds.Exhaustive(loss, shape, n_threads)
    return backgrounds.Sampled(loss, shape, n_threads, A)
