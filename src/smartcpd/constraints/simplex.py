"""Columns that are probabilities."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.copying import copy
from smartcpd.constraints.base import Constraint
from smartcpd.constraints.unit_sum import curvature_exponent, fit_unit_sum, workspace


@dataclass(frozen=True)
class Simplex(Constraint):
    """a >= 0 and every column sums to 1; a little above 0 where the mirror map asks for it."""

    name = "simplex"
    bounded = True
    columnwise = True

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
