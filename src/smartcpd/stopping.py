"""When to stop, and how to say why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smartcpd.history import History, Status

MIN_EPOCHS = 8
ROUNDING = 1e-12
"""Relative error of a loss that is computed, below which changes are not believed."""


@dataclass(frozen=True)
class Stopping:
    """The criteria of a fit.

    ``tol`` asks what the second half of the epochs so far was worth: the fit ends when it changed
    the objective by less than ``tol`` times the resolution of the data, the amount by which noise
    alone moves the minimum. Stochastic steps gain by the doubling, so a comparison of neighbouring
    epochs, or with the size of the loss, would stop while there is still something to learn.
    """

    tol: float
    kkt_tol: float
    max_epochs: int
    max_time: float | None

    def status(self, history: History, resolution: Callable[[], float]) -> Status | None:
        """A status if the fit should end here."""
        last = history[-1]
        if self.tol > 0 and last.epoch >= MIN_EPOCHS:
            change = change_since(history, last.epoch // 2)
            noise = max(resolution(), ROUNDING * abs(last.loss))
            if change < self.tol * noise:
                return Status(
                    True,
                    f"Converged: epochs {last.epoch // 2} to {last.epoch} changed the loss by "
                    f"{change:.1e}, less than tol={self.tol:g} of its uncertainty {noise:.1e}.",
                )
        if last.epoch >= self.max_epochs:
            return Status(
                False,
                f"Stopped at max_epochs={self.max_epochs} before the loss settled; "
                "raise max_epochs for a closer fit.",
            )
        if self.max_time is not None and last.time >= self.max_time:
            return Status(
                False,
                f"Stopped after max_time={self.max_time:g} s, at epoch {last.epoch}; "
                "raise max_time for a closer fit.",
            )
        return None

    def kkt_due(self, history: History) -> bool:
        """Whether to pay for a full gradient: at epochs 8, 16, 32, ..."""
        epoch = history[-1].epoch
        return self.kkt_tol > 0 and epoch >= MIN_EPOCHS and epoch & (epoch - 1) == 0

    def kkt_status(self, residual: float, epoch: int) -> Status | None:
        if residual >= self.kkt_tol:
            return None
        return Status(
            True,
            f"Converged: the KKT residual is {residual:.1e} at epoch {epoch}, "
            f"less than kkt_tol={self.kkt_tol:g}.",
        )


def change_since(history: History, epoch: int) -> float:
    """By how much the objective changed since an epoch."""
    then = next(r for r in reversed(history) if r.epoch <= epoch)
    now = history[-1]
    return abs((then.loss + then.penalty) - (now.loss + now.penalty))
