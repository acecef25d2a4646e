"""The choice of a loss by the values of the data, with a reason that a user can disagree with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smartcpd import losses
from smartcpd._data.opening import as_storage
from smartcpd._data.storage.observed import is_whole
from smartcpd.errors import InvalidDataError
from smartcpd.losses import Data, Dispersion, Loss


class Choice(NamedTuple):
    """A loss, and the sentence that says why it was chosen."""

    loss: Loss
    reason: str


@dataclass
class _Findings:
    """What the values read so far have in common."""

    binary: bool = True
    whole: bool = True
    zeros: bool = False
    negatives: bool = False
    lowest: float = np.inf
    highest: float = -np.inf

    def look(self, values: np.ndarray) -> None:
        if values.size == 0:
            return
        low, high = float(values.min()), float(values.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            what = "NaN" if np.isnan(low) or np.isnan(high) else "infinity"
            raise InvalidDataError(
                f"X holds {what}, and every cell must be a finite number. Replace or drop it first."
            )
        self.lowest, self.highest = min(self.lowest, low), max(self.highest, high)
        self.negatives |= low < 0
        self.zeros |= low <= 0 and bool((values == 0).any())
        if self.whole and values.dtype.kind == "f":
            self.whole = bool((values == np.floor(values)).all())
        self.binary &= self.whole and low >= 0 and high <= 1


def choose_loss(X: Any, absent: str = "zero") -> Choice:
    """Choose the loss that suits the values of X.

    ======================================  ====================  =================================
    values                                  loss                  because
    ======================================  ====================  =================================
    0 and 1 only                            ``bernoulli-odds``    yes/no events
    whole numbers, none negative            ``poisson``           counts
    positive numbers                        ``gamma``             errors in proportion to size
    numbers >= 0, zeros among them          ``poisson``           amounts that may be nothing, as
                                                                  Kullback-Leibler measures them
    numbers, negative ones among them       ``gaussian``          errors of one size
    ======================================  ====================  =================================

    The values cannot tell everything: yes/no events whose log-odds add up want ``bernoulli-logit``,
    counts that scatter widely ``negative-binomial(r)``, measurements with gross errors
    ``huber(delta)``. Amounts with zeros are described more closely by ``beta(0.5)`` (Tweedie's
    compound of counts and gamma amounts), which takes much longer on sparse data.

    Parameters
    ----------
    X : a tensor
        As `SmartCPD` takes it.
    absent : {"zero", "unobserved"}
        What cells mean that sparse data does not store.

    Returns
    -------
    Choice
        ``loss`` and ``reason``.

    Examples
    --------
    >>> import numpy as np, smartcpd
    >>> smartcpd.choose_loss(np.array([[0, 3], [1, 0]])).reason
    'poisson, because all values are whole numbers from 0 to 3: counts'
    """
    found = _Findings()
    storage = as_storage(X, absent)
    for values in storage.observed_values():
        found.look(values)
    name, why = _verdict(found)
    return Choice(losses.get(name), f"{name}, because {why}")


def as_chosen(X: Any, loss: Loss, absent: str = "zero") -> Choice:
    """Return a loss that the user chose, with a remark where the values do not suit it."""
    reason = f"{loss}, as you chose"
    if loss.data is Data.COUNTS and not is_whole(as_storage(X, absent)):
        reason += "; not all values are whole numbers, so they are no counts and " + (
            "are fitted by their Kullback-Leibler divergence"
            if loss.dispersion is Dispersion.OF_AMOUNTS
            else "probabilities under the loss mean little"
        )
    return Choice(loss, reason)


def _verdict(found: _Findings) -> tuple[str, str]:
    extent = f"from {found.lowest:g} to {found.highest:g}"
    if found.negatives:
        return "gaussian", f"some values are negative ({extent}): real numbers"
    if found.binary:
        return "bernoulli-odds", "all values are 0 or 1: yes or no"
    if found.whole:
        return "poisson", f"all values are whole numbers {extent}: counts"
    if found.zeros:
        return "poisson", (
            f"values are amounts {extent}, zeros among them: the scatter of such amounts grows "
            "with their mean, as that of counts does"
        )
    return "gamma", f"all values are positive ({extent}): measurements"
