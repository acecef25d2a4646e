"""The criteria by which a fit stops, and sentences about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from smartcpd._problem.history import History, Record, Status

MIN_EPOCHS = 8
MIN_ENTRIES = 300_000
"""Least number of entries that stochastic steps read before they are judged. An epoch over little
data is so few steps, and takes so little time, that eight of them say nothing."""
WINDOW = 10
"""Number of passes over which a solver that goes downhill is judged."""
ROUNDING = 1e-12
"""Relative error of a computed loss, below which changes are not believed."""


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
    change_tol: float = 0.0
    """The relative change of the objective from one row to the next that ends a fit; 0 never."""
    epochs_before: int = 0
    time_before: float = 0.0
    """What earlier runs of the fit have used: sentences name the limits that the user gave."""
    full_passes: bool = False
    """Whether every step goes downhill; progress is then judged by the last few steps."""

    def for_full_passes(self) -> Stopping:
        """Return the same criteria for solvers whose every step goes downhill."""
        return replace(self, full_passes=True)

    def status(
        self, history: History, restarted: int, resolution: Callable[[], float]
    ) -> Status | None:
        """Return a status if the fit should end here.

        ``restarted`` is the row from which on the objective can be compared; ``resolution``
        estimates the uncertainty of the loss at the best model so far.
        """
        rows = history[restarted:]
        last = rows[-1]
        if self.change_tol > 0 and len(rows) > 1:
            change = abs(rows[-2].objective - last.objective)
            if change < self.change_tol * abs(rows[-2].objective):
                return Status(
                    True,
                    f"Stopped as asked: epoch {last.epoch} changed the loss by {change:.1e}, less "
                    f"than change_tol={self.change_tol:g} of it.",
                )
        n_epochs = last.epoch - rows[0].epoch
        if self.full_passes:
            settled = self._settled(rows, resolution)
            if settled is not None:
                return settled
        elif self.tol > 0 and n_epochs >= MIN_EPOCHS and last.entries >= MIN_ENTRIES:
            middle = last.epoch - n_epochs // 2
            change = change_since(rows, middle)
            noise = max(resolution(), ROUNDING * abs(last.loss))
            if not math.isfinite(noise):
                noise = 0.0
            regret = last.objective - min(r.objective for r in rows)
            if max(change, regret) < self.tol * noise:
                return Status(
                    True,
                    f"Converged: epochs {middle} to {last.epoch} changed the loss by "
                    f"{change:.1e}, less than tol={self.tol:g} of its uncertainty {noise:.1e}.",
                )
        return self.limit(history)

    def limit(self, history: History) -> Status | None:
        """Return a status if a limit of the user's is reached."""
        last = history[-1]
        if last.epoch >= self.max_epochs:
            return Status(
                False,
                f"Stopped at max_epochs={self.epochs_before + self.max_epochs} before the loss "
                "settled; "
                "raise max_epochs for a closer fit.",
            )
        if self.max_time is not None and last.time >= self.max_time:
            return self.out_of_time(last.epoch)
        return None

    def out_of_time(self, epoch: int) -> Status:
        assert self.max_time is not None
        return Status(
            False,
            f"Stopped after max_time={self.time_before + self.max_time:g} s, at epoch "
            f"{self.epochs_before + epoch}; "
            "raise max_time for a closer fit.",
        )

    def _settled(self, rows: Sequence[Record], resolution: Callable[[], float]) -> Status | None:
        """Whether the last passes gained next to nothing."""
        if self.tol == 0 or len(rows) <= WINDOW:
            return None
        last = rows[-1]
        change = rows[-1 - WINDOW].objective - last.objective
        scale = 5e-5 * abs(last.loss)
        # The resolution is computed late, since it costs about as much as a pass over little data.
        if len(rows) % WINDOW == 0:
            scale = max(scale, 5e-3 * resolution())
        if not change < self.tol * scale:
            return None
        return Status(
            True,
            f"Converged: the last {WINDOW} passes lowered the loss by {change:.1e}, less than "
            f"tol={self.tol:g} of {scale:.1e}.",
        )

    def kkt_due(self, history: History) -> bool:
        """Whether to pay for a full gradient, which is done at epochs 8, 16, 32, ..."""
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


def change_since(rows: Sequence[Record], epoch: int) -> float:
    """Return by how much the objective changed since an epoch."""
    then = next(r for r in reversed(rows) if r.epoch <= epoch)
    return abs(then.objective - rows[-1].objective)
