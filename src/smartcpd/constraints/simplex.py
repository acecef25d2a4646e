"""Columns that are probabilities."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.copying import copy
from smartcpd.constraints.base import Constraint
from smartcpd.constraints.unit_sum import curvature_exponent, fit_unit_sum, workspace


@dataclass(frozen=True)
class Simplex(Constraint):
    """Every column is a distribution: its entries are nonnegative and sum to 1.

    For mirror maps whose steps could not leave 0 again, no entry is quite 0.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("simplex").apply([[0.4], [0.8]]).round(6)
    array([[0.3],
           [0.7]])
    """

    name = "simplex"
    bounded = True
    columnwise = True
    in_dual = True

    def params(self, mirror):
        return mirror.floor, curvature_exponent(mirror)

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        work = workspace(Z)
        z, gamma = np.empty(Z.shape[0], Z.dtype), np.empty(Z.shape[0], Z.dtype)
        for r in range(Z.shape[1]):
            copy(Z[:, r], z)
            copy(Gamma[:, r], gamma)
            fit_unit_sum(z, gamma, to_dual, to_primal, mirror_p, p[0], p[1], work)
            copy(z, Z[:, r])
