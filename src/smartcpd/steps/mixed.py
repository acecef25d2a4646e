"""Jensen steps first, adagrad steps to settle."""

from dataclasses import dataclass

from smartcpd.errors import InvalidParameterError
from smartcpd.steps.adagrad import Adagrad
from smartcpd.steps.base import Step


@dataclass(frozen=True)
class SettlingAdagrad(Adagrad):
    """Adagrad steps that follow Jensen steps.

    By default they are half as long as others, and b is all of the mean square of the fit's first
    gradients: they would else first undo what the Jensen steps found.

    Examples
    --------
    >>> from smartcpd.steps.base import Probe
    >>> SettlingAdagrad().params(Probe(4.0, 1.0))
    (0.5, 4.0)
    """

    def params(self, probe):
        return 0.5 * probe.unit, probe.gradient_square


@dataclass(frozen=True)
class Mixed(Step):
    """Jensen steps until an epoch changes the loss by less than ``switch``, then adagrad.

    The second phase uses the quadratic mirror map.

    Parameters
    ----------
    switch : float
        Change of the mean loss between two epochs at which the phases change, in units of the
        loss.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("mixed(0.01)")
    Mixed(switch=0.01)
    """

    switch: float = 1e-4

    name = "mixed"

    def __post_init__(self):
        if not self.switch > 0:
            raise InvalidParameterError(f"switch must be positive; got {self.switch!r}.")
