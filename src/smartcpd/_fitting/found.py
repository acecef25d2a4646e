"""What a fit found, and what it reports on its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from smartcpd._data.labels import Mode
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._methods.base import Epoch
from smartcpd._objectives import Estimate
from smartcpd._problem.history import History, Record, Status
from smartcpd._problem.problem import Problem
from smartcpd.losses import Loss


@dataclass(frozen=True)
class Fit:
    """All that a fit found; `decompose` and `SmartCPD` return parts of it."""

    problem: Problem = field(repr=False)
    """The data, checked, and the pieces that the model was fitted with."""
    model: CPModel
    loss: float
    history: History
    status: Status
    solver: str
    """The strategy or method that "auto" chose, or the user."""
    consensus: Consensus | None = None
    """What several starts agree on, where at least two came to their end."""
    traffic: Any = None
    """The bytes and seconds of the exchange with the workers of a cluster, if there was one."""
    loss_error: float = 0.0
    """The standard error of the loss, where that comes from a sample of the cells."""
    fingerprint: str | None = None
    """A digest of the data, if checkpoints needed one."""
    inner: CPModel | None = field(default=None, repr=False)
    """The model before it became one of rates, where there was an exposure."""

    @property
    def met(self) -> CPModel:
        """The model that stands next to the data of the problem, which may be rates themselves."""
        return self.model if self.inner is None else self.inner

    @property
    def mean_loss(self) -> Estimate:
        """The loss with its standard error."""
        return Estimate(self.loss, self.loss_error)

    def labelled(self, modes: tuple[Mode, ...] | None) -> Fit:
        """Return the same fit, with labels on the modes of its models."""
        if modes is None:
            return self
        agreed = self.consensus
        if agreed is not None:
            agreed = replace(agreed, model=replace(agreed.model, modes=modes))
        return replace(self, model=replace(self.model, modes=modes), consensus=agreed)


@dataclass(frozen=True)
class Report:
    """The report that a callback receives after each epoch."""

    record: Record
    model: Callable[[], CPModel]
    """Builds the model of this row; while several runs compete, not always the best so far."""
    is_best: bool = True
    """Whether this model is what the fit would return if it ended here."""

    @classmethod
    def of(cls, epoch: Epoch, loss: Loss) -> Report:
        """Make a report for a user's callback from the state of a run."""
        return cls(
            epoch.record, lambda: CPModel(epoch.factors(), loss_function=loss), epoch.is_best
        )
