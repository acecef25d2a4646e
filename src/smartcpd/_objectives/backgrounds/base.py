"""The interface of backgrounds: the loss of a tensor of zeros, summed over all its cells."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from smartcpd._data.event_sums import Sum


class Background(Protocol):
    """The sum of l(0, m) over all cells."""

    def sum(self, A: np.ndarray, want_gradient: bool) -> Sum: ...
