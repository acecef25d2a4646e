"""Entries that are not negative."""

from dataclasses import dataclass

import numpy as np

from smartcpd.constraints.base import Constraint


@dataclass(frozen=True)
class Nonnegative(Constraint):
    """No entry is negative; for maps whose steps could not leave 0 again, none is quite 0.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("nonnegative").apply([[-1.0], [3.0]])
    array([[0.],
           [3.]])
    """

    name = "nonnegative"
    cone = True

    @property
    def bounds(self):
        return 0.0, np.inf

    def params(self, mirror):
        return mirror.floor, 0.0

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        z = Z.reshape(-1)
        for i in range(z.size):
            z[i] = max(z[i], p[0])
