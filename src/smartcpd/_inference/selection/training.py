"""Fits of one candidate to training data: from scratch, and from a model of a lower rank."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._data.storage import Storage
from smartcpd._fitting.fit import Fit, fit
from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.candidates import Candidate, estimated_r, with_r
from smartcpd._objectives import objective_of
from smartcpd._strategies.repair import Flaws, repaired
from smartcpd.errors import DivergedError
from smartcpd.losses import Loss
from smartcpd.losses.negative_binomial import NegativeBinomial

ROUNDS = 4
SETTLED = 0.1
"""A change of r, relative to r, after which the factors need no other fit."""


@dataclass(frozen=True)
class Fitted:
    """The better of the fits of a candidate."""

    model: CPModel
    loss: float
    converged: bool
    interrupted: bool
    seconds: float


def fitted(
    storage: Storage,
    rank: int,
    candidate: Candidate,
    seed: np.random.SeedSequence,
    parameters: dict[str, Any],
    previous: CPModel | None = None,
    kin: CPModel | None = None,
) -> Fitted:
    """Fit a candidate from scratch and, given a model of a lower rank, from there as well.

    ``kin`` is a model of the same rank and data under the loss that the candidate is a relative of:
    as good a start as any, and one that costs nothing.
    """
    began = time.perf_counter()
    run = _Run(storage, rank, seed, parameters)
    if candidate.loss is not None:
        found = run.best(candidate.loss, previous)
    else:
        found = run.with_estimated_r(previous, kin)
    status = found.status
    seconds = time.perf_counter() - began
    return Fitted(found.model, found.loss, status.converged, status.interrupted, seconds)


class _Run:
    """The fits of one candidate."""

    def __init__(
        self, storage: Storage, rank: int, seed: np.random.SeedSequence, parameters: dict[str, Any]
    ) -> None:
        self.storage = storage
        self.rank = rank
        self.parameters = parameters
        self.scratch, self.warm, self.new = (np.random.default_rng(s) for s in seed.spawn(3))

    def best(self, loss: Loss, previous: CPModel | None) -> Fit:
        """The fit with the lower loss on the training data."""
        scratch = self._fit(loss, self.scratch)
        if previous is None or previous.rank >= self.rank:
            return scratch
        try:
            warm = self._from(loss, self._widened(previous.distribute().factors, loss))
        except DivergedError:
            return scratch
        return warm if warm.loss < scratch.loss else scratch

    def with_estimated_r(self, previous: CPModel | None, kin: CPModel | None) -> Fit:
        """Negative-binomial counts: r and the factors in turn, until r stays."""
        start = self._fit(losses.get("poisson"), self.scratch).model if kin is None else kin
        r = estimated_r(start, self.storage)
        loss = NegativeBinomial(r)
        found = self._from(loss, with_r(start, r))
        if previous is not None and previous.rank < self.rank:
            warm = self._from(loss, self._widened(with_r(previous, r), loss))
            found = min(found, warm, key=lambda fit: fit.loss)
        for _ in range(ROUNDS):
            before, r = r, estimated_r(found.model, self.storage)
            if abs(math.log(r / before)) < SETTLED:
                return self._at(found, r)
            found = self._from(NegativeBinomial(r), with_r(found.model, r))
        return found

    def _at(self, found: Fit, r: float) -> Fit:
        """Return the same means under another r."""
        model = CPModel(with_r(found.model, r), loss_function=NegativeBinomial(r))
        return replace(found, model=model, loss=model.loss(self.storage))

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
