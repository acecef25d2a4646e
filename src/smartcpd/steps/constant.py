"""The same step size at every iteration."""

from dataclasses import dataclass

from smartcpd.errors import InvalidParameterError
from smartcpd.steps.base import Step


@dataclass(frozen=True)
class Constant(Step):
    """Gamma = 1 / eta for every entry.

    Parameters
    ----------
    eta : float, optional
        Step size. By default a tenth of what would change a typical entry by its own size at the
        first gradient.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("constant(0.1)").gamma(3.0, 0.0, 0.0, 0.0, 1, (0.1, 0.0))
    (10.0, 0.0)
    """

    eta: float | None = None

    name = "constant"

    def __post_init__(self):
        if self.eta is not None and not self.eta > 0:
            raise InvalidParameterError(f"eta must be positive; got {self.eta!r}.")

    def params(self, probe):
        return self.eta or 0.1 * probe.unit / probe.gradient_square**0.5, 0.0

    @staticmethod
    def gamma(g, c, d, s, k, p):
        return 1.0 / p[0], s
