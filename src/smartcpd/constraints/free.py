"""No constraint."""

from dataclasses import dataclass

import numpy as np

from smartcpd.constraints.base import Constraint


@dataclass(frozen=True)
class Free(Constraint):
    """Entries may be any real number.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("free").signed
    True
    """

    name = "free"
    cone = True

    @property
    def bounds(self):
        return -np.inf, np.inf

    @property
    def signed(self):
        return True

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        pass
