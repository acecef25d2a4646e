"""Step sizes that fall slowly enough to arrive and fast enough to settle."""

from dataclasses import dataclass

from smartcpd._kernels.elementary import exp, log
from smartcpd.errors import InvalidParameterError
from smartcpd.steps.base import Step
from smartcpd.steps.constant import Constant


@dataclass(frozen=True)
class Diminishing(Step):
    """Gamma = (1 + k)^decay / eta at a mode's k-th update.

    Parameters
    ----------
    eta : float, optional
        First step size; by default as for constant steps.
    decay : float
        Above 1/2 and at most 1: the steps then sum to infinity and their squares do not, as the
        convergence theorem asks.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("diminishing(0.1, 1)")
    Diminishing(eta=0.1, decay=1)
    """

    eta: float | None = None
    decay: float = 0.6

    name = "diminishing"

    def __post_init__(self):
        Constant(self.eta)
        if not 0.5 < self.decay <= 1:
            raise InvalidParameterError(
                f"decay must be above 0.5 and at most 1; got {self.decay!r}."
            )

    def params(self, probe):
        return Constant(self.eta).params(probe)[0], self.decay

    @staticmethod
    def gamma(g, c, d, s, k, p):
        return exp(p[1] * log(1.0 + k)) / p[0], s
