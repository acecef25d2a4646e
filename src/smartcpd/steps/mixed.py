"""Jensen steps first, adagrad steps to settle."""

from dataclasses import dataclass

from smartcpd.errors import InvalidParameterError
from smartcpd.steps.base import Step


@dataclass(frozen=True)
class Mixed(Step):
    """Jensen steps until an epoch changes the loss by less than ``switch``, then adagrad.

    The second phase uses the quadratic mirror map, and the b of adagrad steps from the start on.

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
