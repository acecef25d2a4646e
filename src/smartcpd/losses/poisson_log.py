"""Counts whose mean is a product of effects."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import exp
from smartcpd.losses.base import Domain
from smartcpd.losses.poisson import PoissonCounts


@dataclass(frozen=True)
class PoissonLog(PoissonCounts):
    """Counts whose components multiply: each may raise or lower the mean.

    Distribution: x ~ Poisson(e^m).  Link: log.

    l(x, m) = e^m - x m;  derivative e^m - x.  Domain: m real.

    Matched mirror map: none; e^m has no curvature bound, so there are no Jensen steps.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("poisson-log")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    0.6487
    """

    name = "poisson-log"
    domain = Domain.REAL
    convex = True
    logarithmic = True

    @staticmethod
    def value(x, m, p):
        return exp(m) - x * m

    @staticmethod
    def derivative(x, m, p):
        return exp(m) - x

    @staticmethod
    def mean(m, p):
        return np.exp(m)

    def link(self, mean):
        return float(np.log(max(mean, 1e-6)))
