"""Steps scaled by a running mean of squared gradients."""

import math
from dataclasses import dataclass

from smartcpd.steps.adagrad import Adagrad
from smartcpd.steps.base import Step

KEPT = 0.99
"""The share of the running mean that an update keeps."""


@dataclass(frozen=True)
class Adam(Step):
    """Gamma = sqrt((1 + k) (v + b)) / eta at a mode's k-th update, v a running mean of g².

    The scaling of Adam-type schemes, with the falling step sizes under which they converge. Other
    than adagrad's sum, v forgets the gradients of the start. There is no momentum: a mirror step
    takes the sampled gradient itself.

    Parameters
    ----------
    eta, b : float, optional
        As for adagrad.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("adam(0.5)").gamma(3.0, 0.0, 0.0, 9.0, 0, (0.5, 0.0))
    (6.0, 9.0)
    """

    eta: float | None = None
    b: float | None = None

    name = "adam"

    def __post_init__(self):
        Adagrad(self.eta, self.b)

    @property
    def max_ratio(self):
        return Adagrad(self.eta).max_ratio

    def params(self, probe):
        return Adagrad(self.eta, self.b).params(probe)

    @staticmethod
    def gamma(g, c, d, s, k, p):
        s = g * g if k == 0.0 else KEPT * s + (1.0 - KEPT) * g * g
        return math.sqrt((1.0 + k) * (s + p[1])) / p[0], s
