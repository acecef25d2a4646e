"""Entries between two bounds."""

from dataclasses import dataclass

import numpy as np

from smartcpd.constraints.base import Constraint
from smartcpd.errors import InvalidParameterError


@dataclass(frozen=True)
class Box(Constraint):
    """Every entry a satisfies lo <= a <= hi.

    Parameters
    ----------
    lo, hi : float
        The bounds; either may be infinite.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("box(0, 1)").apply([[-1.0], [3.0]])
    array([[0.],
           [1.]])
    """

    lo: float = 0.0
    hi: float = np.inf

    name = "box"
    bounded = True

    @property
    def can_shrink(self) -> bool:
        return self.lo <= 0 <= self.hi

    def __post_init__(self):
        if not self.lo < self.hi:
            raise InvalidParameterError(
                f"box(lo, hi) needs lo < hi; got lo={self.lo!r}, hi={self.hi!r}."
            )

    @property
    def bounds(self):
        return self.lo, self.hi

    @property
    def signed(self):
        return self.lo < 0

    def params(self, mirror):
        return max(self.lo, mirror.floor) if self.lo >= 0 else self.lo, self.hi

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        z = Z.reshape(-1)
        for i in range(z.size):
            z[i] = min(max(z[i], p[0]), p[1])
