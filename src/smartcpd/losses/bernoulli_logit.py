"""Yes/no events whose log-odds are a sum of components."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import exp, log
from smartcpd.losses.base import CERTAIN, Domain
from smartcpd.losses.bernoulli_odds import BernoulliEvents


@dataclass(frozen=True)
class BernoulliLogit(BernoulliEvents):
    """Yes/no events: a component may speak for or against the answer yes.

    Distribution: x ~ Bernoulli(1 / (1 + e^-m)).  Link: logit.

    l(x, m) = log(1 + e^m) - x m;  derivative 1 / (1 + e^-m) - x.  Domain: m real.

    Matched mirror map: quadratic, through the curvature bound 1/4 (Jensen steps also need
    nonnegative factors).

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("bernoulli-logit")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -0.3775
    """

    name = "bernoulli-logit"
    domain = Domain.REAL
    convex = True
    logarithmic = True

    @property
    def jensen_mirror(self):
        return "quadratic"

    @property
    def convex_background(self):
        return 0.0, 0.25

    @staticmethod
    def value(x, m, p):
        return max(m, 0.0) + log(1.0 + exp(-abs(m))) - x * m

    @staticmethod
    def derivative(x, m, p):
        return 1.0 / (1.0 + exp(-m)) - x

    @staticmethod
    def convex_derivative(x, m, p):
        return 0.25 * m

    @staticmethod
    def mean(m, p):
        return np.where(m > 0, 1.0, np.exp(-np.abs(m))) / (1.0 + np.exp(-np.abs(m)))

    def link(self, mean):
        return float(np.log(max(mean, 1e-6) / max(1.0 - mean, 1e-6)))

    def certain(self, m):
        return np.abs(m) > CERTAIN

    def simulate(self, m, rng, *, dispersion=None):
        return (rng.random(np.shape(m)) < self.mean(m, self.params)).astype("uint8")
