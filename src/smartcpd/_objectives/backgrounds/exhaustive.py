"""A background that visits every cell, for tensors where that is affordable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._data.event_sums import Sum
from smartcpd._kernels.fibers import zero_gather
from smartcpd._objectives.fibers import FiberPass
from smartcpd.losses import Loss


@dataclass(frozen=True)
class Exhaustive:
    """A background that is exact for any loss, at the cost of a pass over all cells."""

    loss: Loss
    shape: tuple[int, ...]
    n_threads: int = 1

    def sum(self, A: np.ndarray, want_gradient: bool) -> Sum:
        mode = int(np.argmax(self.shape))
        nothing = np.zeros(1, np.int64)
        zeros = FiberPass(zero_gather, nothing, self.shape, mode, self.loss, self.n_threads)
        if want_gradient:
            return Sum(*zeros.gradient(A))
        return Sum(zeros.value(A), A)
