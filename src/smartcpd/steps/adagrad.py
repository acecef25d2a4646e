"""Steps scaled by the gradients seen so far."""

import math
from dataclasses import dataclass

from smartcpd.errors import InvalidParameterError
from smartcpd.steps.base import Step
from smartcpd.steps.constant import Constant

SHORTER = tuple(0.5**k for k in range(7))
"""The lengths of steps that are tried in turn where longer ones gain nothing."""


@dataclass(frozen=True)
class Adagrad(Step):
    """Gamma = sqrt(sum of g² up to now + b) / eta, entry by entry.

    The sum includes the current gradient, so that no step exceeds eta in the dual.

    Parameters
    ----------
    eta : float, optional
        By default the change in the dual that changes a typical entry by about its own size: 1
        for the entropy map, where the paper's rule has no factor, and half its size for nonnegative
        entries under the quadratic map, where a whole step would end at 0. No step then more than
        doubles or halves an entry towards an end of the dual, and where steps gain nothing from the
        start on, shorter ones are tried.
    b : float, optional
        By default a thousandth of the mean square of the first gradients of the fit, since b has
        their units; the paper's 1e-5 is right at the scale of its experiments.
    past_only : bool, optional
        Leave the current gradient out of the sum, as the paper prints it. Needs an eta and a b, as
        nothing else bounds the first step.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("adagrad(0.5)").gamma(3.0, 0.0, 0.0, 16.0, 1, (0.5, 0.0))
    (10.0, 25.0)
    """

    eta: float | None = None
    b: float | None = None
    past_only: bool | None = None

    name = "adagrad"

    def __post_init__(self):
        Constant(self.eta)
        if self.b is not None and not self.b >= 0:
            raise InvalidParameterError(f"b must not be negative; got {self.b!r}.")
        if self.past_only and not (self.eta and self.b):
            raise InvalidParameterError(
                f"past_only needs an eta and a positive b; got eta={self.eta!r}, b={self.b!r}. Use "
                "adagrad(1, 1e-5, True), as in the paper."
            )

    @property
    def paces(self):
        return SHORTER if self.eta is None else (1.0,)

    @property
    def max_ratio(self):
        # Some entries lie nearer to the end of the dual than typical ones. One that jumps there
        # leaves gradients in the sums, its own and others', that no later step outweighs.
        return 2.0 if self.eta is None else super().max_ratio

    def params(self, probe):
        b = 1e-3 * probe.gradient_square if self.b is None else self.b
        return self.eta or min(probe.unit, probe.half), b

    @staticmethod
    def gamma(g, c, d, s, k, p):
        s += g * g
        return math.sqrt(s + p[1]) / p[0], s

    @staticmethod
    def _gamma_of_the_past(g, c, d, s, k, p):
        return math.sqrt(s + p[1]) / p[0], s + g * g

    def variant(self, formula):
        return "_gamma_of_the_past" if self.past_only else formula
