"""The background of a loss that is a quadratic of the model where the data is zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._data.event_sums import Sum
from smartcpd._objectives.backgrounds.quadratic import Quadratic, quadratic_sum


@dataclass(frozen=True)
class ClosedForm:
    """A background that is exact, at the cost of a pass over the factors."""

    coefficients: tuple[float, float, float]
    shape: tuple[int, ...]

    def sum(self, A: np.ndarray, want_gradient: bool) -> Sum:
        return Sum(*quadratic_sum(A, self.shape, Quadratic(*self.coefficients), want_gradient))
