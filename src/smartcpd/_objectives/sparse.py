"""The objective of a sparse tensor: its nonzeros one by one, its zeros all at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from smartcpd._data.event_sums import Sum, event_curvature_product, event_sum, scaled_event_sum
from smartcpd._data.storage import SparseTensor
from smartcpd._objectives import backgrounds
from smartcpd._objectives.backgrounds import Background
from smartcpd._objectives.backgrounds.quadratic import square_product
from smartcpd._objectives.base import ALL_CELLS, Estimate, objective_of, scaled_gradient
from smartcpd._objectives.cancelling import at_worst
from smartcpd.losses import Loss


@dataclass(frozen=True)
class SparseObjective:
    """The objective of a sparse tensor: the loss of zeros for every cell, and what nonzeros add to
    it.

    Where absent cells are unobserved there is no background, and the events are all there is.
    """

    storage: SparseTensor
    loss: Loss
    n_threads: int = 1
    background: Background | None = None
    """The background to use in place of the one chosen at each call."""

    def estimate(self, A: np.ndarray) -> Estimate:
        behind = self.behind(A, False)
        n = self.storage.n_observed
        total = at_worst(self.events(A, False).total + behind.total, behind.total)
        return Estimate(total / n, math.sqrt(behind.variance) / n)

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        behind, events = self.behind(A, True), self.events(A, True)
        n = self.storage.n_observed
        total = at_worst(events.total + behind.total, behind.total)
        return total / n, (events.gradient + behind.gradient) / n

    def convex_gradient(self, A: np.ndarray) -> np.ndarray:
        """Return the gradient of the loss's convex part, for data without zeros."""
        storage = self.storage
        assert storage.absent == "unobserved"
        convex = event_sum(storage.events, self.loss, "whole", A, True, self.n_threads, convex=True)
        return convex.gradient / storage.n_observed

    def curvature_product(self, A: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return J' W J V: the Gauss-Newton approximation of the Hessian at A, times the direction
        V.

        It serves losses that are a quadratic of the model at zeros, and data without zeros.
        """
        storage = self.storage
        behind = 0.0
        if storage.absent == "zero":
            assert self.loss.background is not None
            behind = self.loss.background[2]
        product = event_curvature_product(storage.events, self.loss, behind, A, V, self.n_threads)
        if behind:
            product += behind * square_product(A, V, storage.shape)
        return product / storage.n_observed

    def compile(self, A: np.ndarray) -> None:
        """Compile all that passes need, on a tensor of one cell."""
        order = len(self.storage.shape)
        cell = np.zeros((1, order), np.int64)
        one = np.ones(1, self.storage.dtype)
        weights = np.full(1, 0.5) if self.storage.weighted else None
        tiny = SparseTensor(cell, one, (1,) * order, self.storage.absent, weights)
        objective = SparseObjective(tiny, self.loss, self.n_threads)
        ones = np.ones((order, 1))
        objective.gradient(ones)
        scaled_gradient(objective, ones)
        objective.estimate(ones)
        if self.loss.taylor_at_zero is not None:
            hot = backgrounds.HotCells.of(self.loss, tiny.shape, self.n_threads, ones)
            assert hot is not None
            for want_gradient in (True, False):
                hot.sum(ones, want_gradient)

    def with_background(self, A: np.ndarray) -> SparseObjective:
        if self.storage.absent == "unobserved":
            return self
        chosen = backgrounds.choose(self.loss, self.storage.shape, self.n_threads, A, exact=False)
        return replace(self, background=chosen)

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        first = self.with_background(A)
        n_events = len(self.storage.events)
        chosen = None if n_events <= ALL_CELLS else np.sort(rng.integers(n_events, size=ALL_CELLS))
        share = 1.0 if chosen is None else ALL_CELLS / n_events
        n = self.storage.n_observed

        def look(A: np.ndarray) -> Estimate:
            # Which cells matter changes from look to look; a sample stays the same.
            moving = isinstance(first.background, backgrounds.HotCells)
            quick = self.with_background(A) if moving else first
            events, behind = self.events(A, False, chosen), quick.behind(A, False)
            total = at_worst(events.total / share + behind.total, behind.total)
            return Estimate(total / n, math.sqrt(behind.variance) / n)

        return look

    def events(self, A: np.ndarray, want_gradient: bool, chosen: np.ndarray | None = None) -> Sum:
        """Sum what all nonzeros, or the chosen ones, add to the background; missing cells, which
        count as nonzeros of weight 0 here, take away what it has in their place.
        """
        part = "whole" if self.storage.absent == "unobserved" else "surplus"
        return event_sum(
            self.storage.events,
            self.loss,
            part,
            A,
            want_gradient,
            self.n_threads,
            chosen,
        )

    def behind(self, A: np.ndarray, want_gradient: bool) -> Sum:
        """Return the sum of the background."""
        if self.storage.absent == "unobserved":
            return Sum(0.0, np.zeros_like(A))
        storage = self.storage
        background = self.background or backgrounds.choose(
            self.loss, storage.shape, self.n_threads, A
        )
        return background.sum(A, want_gradient)


@objective_of.register
def _(storage: SparseTensor, loss: Loss, n_threads: int = 1) -> SparseObjective:
    return SparseObjective(storage, loss, n_threads)


@scaled_gradient.register
def _(objective: SparseObjective, A: np.ndarray) -> tuple[float, np.ndarray]:
    storage = objective.storage
    if storage.weighted:
        value, gradient = objective.gradient(A)
        return value, A * gradient
    behind = objective.behind(A, True)
    part = "whole" if storage.absent == "unobserved" else "surplus"
    events = scaled_event_sum(storage.events, objective.loss, part, A, objective.n_threads)
    n = storage.n_observed
    total = at_worst(events.total + behind.total, behind.total)
    return total / n, (events.gradient + A * behind.gradient) / n
