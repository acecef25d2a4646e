"""Entries that are not negative."""

from dataclasses import dataclass

from smartcpd.constraints.base import Constraint


@dataclass(frozen=True)
class Nonnegative(Constraint):
    """a >= 0; a little above 0 for mirror maps whose steps could not leave 0 again."""

    name = "nonnegative"
    cone = True

    def params(self, mirror):
        return mirror.floor, 0.0

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        z = Z.reshape(-1)
        for i in range(z.size):
            z[i] = max(z[i], p[0])
