"""Fits of one candidate to training data: from scratch, and from a model of a lower rank."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._data.storage import Storage
from smartcpd._fitting.fit import fit
from smartcpd._fitting.found import Fit
from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.candidates import Candidate
from smartcpd._objectives import objective_of
from smartcpd._strategies.repair import Flaws, repaired
from smartcpd.errors import DivergedError
from smartcpd.losses import Loss


@dataclass(frozen=True)
class Fitted:
    """The better of the fits of a candidate."""

    model: CPModel
    loss: float
    converged: bool
    interrupted: bool
    seconds: float
    widens: bool = False
    """Whether a lower rank's model and a new component led about as low as a fit from scratch."""


AS_LOW = 0.1
"""The share of what a higher rank gains in training that a start from a lower one may miss."""


def fitted(
    storage: Storage,
    rank: int,
    candidate: Candidate,
    seed: np.random.SeedSequence,
    parameters: dict[str, Any],
    previous: Fitted | None = None,
    kin: CPModel | None = None,
    scratch: bool = True,
) -> Fitted:
    """Fit a candidate from ``scratch`` and, given the fit of a lower rank, from there as well.

    Given ``kin``, a model of the same data, under the loss that the candidate is a relative of or
    under the candidate's own, it starts from there alone.
    """
    began = time.perf_counter()
    run = _Run(storage, rank, seed, parameters)
    widens = False
    if kin is not None:
        found = run.from_kin(candidate.loss, kin)
    elif candidate.loss.is_open:
        found = run.with_parameter(candidate.loss)
    else:
        found, widens = run.best(candidate.loss, previous, scratch)
    status = found.status
    seconds = time.perf_counter() - began
    return Fitted(found.model, found.loss, status.converged, status.interrupted, seconds, widens)


class _Run:
    """The fits of one candidate."""

    def __init__(
        self, storage: Storage, rank: int, seed: np.random.SeedSequence, parameters: dict[str, Any]
    ) -> None:
        self.storage = storage
        self.rank = rank
        self.parameters = parameters
        self.scratch, self.warm, self.new = (np.random.default_rng(s) for s in seed.spawn(3))

    def best(self, loss: Loss, previous: Fitted | None, scratch: bool) -> tuple[Fit, bool]:
        """The fit with the lower loss on the training data, and whether the one from a lower rank
        is about as low as any.
        """
        warm = None
        if previous is not None and previous.model.rank < self.rank:
            with suppress(DivergedError):
                start = self._widened(previous.model.distribute().factors, loss)
                warm = self._from(loss, start)
        if warm is not None and not scratch:
            return warm, True
        found = self._fit(loss, self.scratch)
        if warm is None or previous is None:
            return found, False
        gain = max(previous.loss - found.loss, 0.0)
        is_as_low = warm.loss <= found.loss + AS_LOW * gain
        return (warm if warm.loss < found.loss else found), is_as_low

    def with_parameter(self, loss: Loss) -> Fit:
        """A fit that finds the parameter of its loss, after one under the loss's limit."""
        return self._fit(loss, self.scratch)

    def from_kin(self, loss: Loss, kin: CPModel) -> Fit:
        """A fit from a model that is about as good already."""
        return self._fit(loss, self.warm, init=kin, n_init=1)

    def _fit(self, loss: Loss, rng: np.random.Generator, **more: Any) -> Fit:
        given = self.parameters | {"progress": False, "random_state": rng} | more
        return fit(self.storage, self.rank, loss, **given)

    def _from(self, loss: Loss, start: list[np.ndarray]) -> Fit:
        return self._fit(loss, self.warm, init=start, n_init=1)

    def _widened(self, factors: list[np.ndarray], loss: Loss) -> list[np.ndarray]:
        """Add new components that the data asks for."""
        n_threads = threads.resolve(self.parameters.get("n_threads"))
        objective = objective_of(self.storage, loss, n_threads)
        with threads.limited_to(n_threads):
            while factors[0].shape[1] < self.rank:
                wider = [np.hstack([A, np.zeros((len(A), 1))]) for A in factors]
                lacking = Flaws([wider[0].shape[1] - 1], [], [])
                factors = repaired(wider, lacking, objective, self.new)
        return factors
