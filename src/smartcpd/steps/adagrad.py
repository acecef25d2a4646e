"""Steps scaled by the gradients seen so far."""

import math
from dataclasses import dataclass

from smartcpd.errors import InvalidParameterError
from smartcpd.steps.base import Step
from smartcpd.steps.constant import Constant


@dataclass(frozen=True)
class Adagrad(Step):
    """Gamma = sqrt(sum of g² up to now + b) / eta, entry by entry.

    The sum includes the current gradient, so that no step exceeds eta in the dual.

    Parameters
    ----------
    eta : float, optional
        By default the change in the dual that changes a typical entry by its own size: 1 for the
        entropy map, where the paper's rule has no factor.
    b : float, optional
        By default a thousandth of the mean square of the first gradients, since b has their units;
        the paper's 1e-5 is right at the scale of its experiments.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("adagrad(0.5)").gamma(3.0, 0.0, 0.0, 16.0, 1, (0.5, 0.0))
    (10.0, 25.0)
    """

    eta: float | None = None
    b: float | None = None

    name = "adagrad"

    def __post_init__(self):
        Constant(self.eta)
        if self.b is not None and not self.b >= 0:
            raise InvalidParameterError(f"b must not be negative; got {self.b!r}.")

    def params(self, probe):
        b = 1e-3 * probe.gradient_square if self.b is None else self.b
        return self.eta or probe.unit, b

    @staticmethod
    def gamma(g, c, d, s, k, p):
        s += g * g
        return math.sqrt(s + p[1]) / p[0], s
