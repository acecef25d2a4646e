"""Jensen steps first, adagrad steps to settle."""

import math
from dataclasses import dataclass

from smartcpd.errors import InvalidParameterError
from smartcpd.steps.adagrad import Adagrad
from smartcpd.steps.base import Step


@dataclass(frozen=True)
class SettlingAdagrad(Adagrad):
    """Adagrad steps that follow Jensen steps.

    They are the paper's, eta = 1 and b = 1e-5, in units of the data. For factors from U(0, 1), eta
    is their largest entry, the root of 3 times a typical one. b is about what an epoch of gradients
    of the size of the first ones sums to, at any size of the tensor: with less, the first steps
    would undo what the Jensen steps found. On small tensors with much noise they may do so still,
    and shorter ones are tried.

    Examples
    --------
    >>> from smartcpd.steps.base import Probe
    >>> eta, b = SettlingAdagrad().params(Probe(gradient_square=4.0, unit=1.0, updates=10.0))
    >>> round(eta, 4), b
    (1.7321, 40.0)
    """

    def params(self, probe):
        return math.sqrt(3.0) * probe.unit, probe.updates * probe.gradient_square


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
