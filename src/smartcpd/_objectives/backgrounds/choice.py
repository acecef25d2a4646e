"""The choice of a background for a loss and a tensor."""

from __future__ import annotations

import math

import numpy as np

from smartcpd._objectives.backgrounds.base import Background
from smartcpd._objectives.backgrounds.closed_form import ClosedForm
from smartcpd._objectives.backgrounds.exhaustive import Exhaustive
from smartcpd._objectives.backgrounds.hot_cells import HotCells
from smartcpd._objectives.backgrounds.sampled import Sampled
from smartcpd.losses import Loss

EXHAUSTIVE_CELLS = 1 << 25
"""Up to this many cells, passing over all of them takes less than about a second."""


def choose(
    loss: Loss, shape: tuple[int, ...], n_threads: int, A: np.ndarray, exact: bool = True
) -> Background:
    """Return the cheapest background that is exact, or as near as makes no difference, at the
    factors A.

    With ``exact=False`` the few cells that matter, or a sample, may stand for all of them in
    tensors that could also be passed over.
    """
    if loss.background is not None:
        return ClosedForm(loss.background, shape)
    n_cells = math.prod(shape)
    if n_cells <= (EXHAUSTIVE_CELLS if exact else EXHAUSTIVE_CELLS >> 6):
        return Exhaustive(loss, shape, n_threads)
    if loss.taylor_at_zero is not None and A.min() >= 0:
        hot = HotCells.of(loss, shape, n_threads, A)
        if hot is not None:
            return hot
    if n_cells <= EXHAUSTIVE_CELLS:
        return Exhaustive(loss, shape, n_threads)
    return Sampled(loss, shape, n_threads, A)
