"""Counts that vary more than Poisson counts."""

from dataclasses import dataclass

from smartcpd._kernels.elementary import log
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import EPS, Data, Domain, Loss


@dataclass(frozen=True)
class NegativeBinomial(Loss):
    """Over-dispersed counts: the variance is mean + mean² / r.

    Distribution: x ~ NegativeBinomial(r, 1 / (1 + m)), with mean r m.  Link: odds.

    l(x, m) = (r + x) log(1 + m) - x log(m + eps);
    derivative (r + x) / (1 + m) - x / (m + eps).  Domain: m >= 0.

    Matched mirror map: burg, through the convex part -x log(m + eps).

    Parameters
    ----------
    r : float
        The dispersion, above 0: the smaller, the wider counts scatter.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("negative-binomial(2.0)")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    0.0
    """

    r: float

    name = "negative-binomial"
    data = Data.COUNTS
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"

    def __post_init__(self):
        if not self.r > 0:
            raise InvalidParameterError(f"r must be positive; got {self.r!r}.")

    @property
    def jensen_mirror(self):
        return "burg"

    @property
    def convex_background(self):
        return 0.0, 0.0

    @staticmethod
    def taylor_at_zero(p):
        return p[0], -p[0]

    @staticmethod
    def value(x, m, p):
        return (p[0] + x) * log(1.0 + m) - x * log(m + EPS)

    @staticmethod
    def derivative(x, m, p):
        return (p[0] + x) / (1.0 + m) - x / (m + EPS)

    @staticmethod
    def convex_derivative(x, m, p):
        return -x / (m + EPS)

    @staticmethod
    def mean(m, p):
        return p[0] * m

    def link(self, mean):
        return mean / self.r

    def simulate(self, m, rng):
        return rng.negative_binomial(self.r, 1.0 / (1.0 + m))
