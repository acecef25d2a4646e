"""Bursts of steps over a sparse tensor, each of which improves a mixture in one call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage import SparseTensor
from smartcpd._data.storage.paired import MOST_PAIRED
from smartcpd._kernels.hot_counts import hot_cells_block
from smartcpd._kernels.lanes import lanes_of_a_line, padded
from smartcpd._kernels.mixture_passes import (
    LEAST_MASS,
    compiled_mixture_passes,
    compiled_paired_passes,
)
from smartcpd._kernels.root_steps import compiled_paired_steps, compiled_root_steps
from smartcpd._methods.mixture import Mixture
from smartcpd.losses import Loss
from smartcpd.losses.base import EPS

HOT_CELLS, LEAST_HOT_CELLS = 16, 1 << 16
"""Bursts serve a model with up to so many large cells for each entry, or in all: passes over all
cells of a tensor are quicker where there are more."""
ROUGH, FINE = 0.2, 0.01
"""The model values from which on a cell is looked at by itself: while components are sought, and
where a descent is to end."""
REMEMBERED = 10
"""Number of steps that a quasi-Newton method remembers."""


class Descended(NamedTuple):
    """Where quasi-Newton steps led, and what it takes to go on from there."""

    mixture: Mixture
    loss: float
    """The sum over all cells; NaN where the model has too many large cells."""
    n_steps: int
    settled: bool


def serves(loss: Loss) -> bool:
    """Whether mixtures are improved by bursts under a loss: the loss of an empty cell is a line, or
    has a Taylor series.
    """
    if loss.pseudo_count_slope is None:
        return False
    if loss.background is not None:
        return bool(loss.background[2] == 0.0)
    return is_curved(loss)


def is_curved(loss: Loss) -> bool:
    """Whether the loss of an empty cell is more than a line, though it has a Taylor series. EM
    takes it for a line, and creeps where the model is large.
    """
    return loss.background is None and loss.taylor_at_zero is not None


def needed_kernels(loss: Loss, order: int) -> tuple[str, ...]:
    """Name the kernels that a search by bursts asks for, in that order."""
    steps = ("root_steps.paired_steps",) if is_curved(loss) else ()
    passes = "mixture_passes.paired_passes:float32"
    return (passes, "merging.merge_components", *steps, "bounded_rows.bounded_rows")


def quickest_precision(shape: tuple[int, ...]) -> str:
    """The precision in which a search is made: float32, which takes half the time and ranks
    mixtures as well, unless products of the smallest entries are too small for it.
    """
    smallest = math.prod(LEAST_MASS / size for size in shape)
    return "float32" if smallest > np.finfo(np.float32).tiny else "float64"


@dataclass(frozen=True)
class Bursts:
    """Steps over the entries of a tensor, under one loss."""

    shape: tuple[int, ...]
    given: tuple[Any, ...]
    """What compiled steps take first."""
    given_passes: tuple[Any, ...]
    """The same for passes of EM, in their precision."""
    dtype: str
    """The precision of passes of EM."""
    paired: bool
    """Whether events are sorted into pairs."""
    curved: bool
    """Whether the loss of an empty cell is more than a line."""

    @classmethod
    def over(cls, storage: SparseTensor, loss: Loss, threshold: float = ROUGH) -> Bursts:
        """Prepare the steps; cells whose model value is below the threshold are summed up by a
        line, where they have no closed form.
        """
        paired = loss.events_are_logs and not storage.weighted and storage.nnz <= MOST_PAIRED
        given = _given(storage, loss, threshold, paired, "float64")
        dtype = quickest_precision(storage.shape) if paired else "float64"
        for_passes = _given(storage, loss, threshold, paired, dtype)
        return cls(storage.shape, given, for_passes, dtype, paired, is_curved(loss))

    @property
    def order(self) -> int:
        return len(self.shape)

    @property
    def lanes(self) -> int:
        return lanes_of_a_line(self.dtype)

    def improved(
        self, mixture: Mixture, n_passes: int, lift: float, smoothing: float = 0.0
    ) -> tuple[float, Mixture]:
        """The sum of the loss over all cells after some passes of EM, and the mixture there; NaN
        where the model has too many large cells.

        Entries of a column are never below their even share of a mass: ``lift`` at first, less
        from pass to pass. Without it entries that look empty early on fall to nothing.
        ``smoothing`` events, spread evenly over the rows of each mode, are added in every pass.
        """
        found = self._passes(mixture, n_passes, lift, smoothing)
        return found.loss, found.mixture

    def descended(self, mixture: Mixture, n_steps: int, least: float = 0.0) -> Descended:
        """Make ``n_steps`` steps from a mixture, or fewer where a few in a row gain no more than
        ``least``: passes of EM for counts, quasi-Newton steps where those would creep.
        """
        if self.curved:
            return self._root_steps(mixture, n_steps, least)
        return self._passes(mixture, n_steps, least=least)

    def _passes(
        self,
        mixture: Mixture,
        n_passes: int,
        lift: float = 0.0,
        smoothing: float = 0.0,
        least: float = -math.inf,
    ) -> Descended:
        columns, rank = padded(mixture.columns, self.dtype, self.lanes), mixture.rank
        weights = np.zeros(columns.shape[1], self.dtype)
        weights[:rank] = mixture.weights
        done = np.zeros(2)
        if self.paired:
            passes = compiled_paired_passes(self.dtype)
        else:
            passes = compiled_mixture_passes(self.order)
        how = n_passes, smoothing, lift, least
        loss = passes(*self.given_passes, rank, how, columns, weights, done)
        found = columns[:, :rank].astype(np.float64)
        improved = Mixture(found, weights[:rank].astype(np.float64), mixture.shape)
        return Descended(improved, loss, int(done[0]), bool(done[1]))

    def _root_steps(self, mixture: Mixture, n_steps: int, least: float) -> Descended:
        A, rank = mixture.balanced(), mixture.rank
        # With balanced modes, the columns of all but one have this product of sums.
        others = mixture.weights ** ((self.order - 1) / self.order)
        scales = np.sqrt(np.maximum(others, 1e-100))
        v = (np.sqrt(A) * scales).reshape(-1)
        S, Y = np.empty((2, REMEMBERED, v.size))
        memory = np.zeros(3)
        steps = compiled_paired_steps() if self.paired else compiled_root_steps(self.order)
        width = padded(A[:1]).shape[1]
        loss = steps(*self.given, rank, width, n_steps, least, scales, v, S, Y, memory)
        roots = v.reshape(A.shape) / scales
        found = Mixture.of(roots * roots, mixture.shape)
        return Descended(found, loss, int(memory[1]), bool(memory[2]))


def _given(
    storage: SparseTensor, loss: Loss, threshold: float, paired: bool, dtype: str
) -> tuple[Any, ...]:
    """What compiled steps take first."""
    assert loss.pseudo_count_slope is not None
    most_hot = max(LEAST_HOT_CELLS, HOT_CELLS * storage.nnz) if is_curved(loss) else 0
    return (
        _pairs(storage, dtype) if paired else _events(storage, loss),
        (loss.value_block(dtype), loss.derivative_block(dtype)),
        loss.params,
        np.array([loss.pseudo_count_slope, 1.0 / storage.heaviest, threshold]),
        hot_cells_block(most_hot > 0),
        most_hot,
        offsets(storage.shape),
    )


def _pairs(storage: SparseTensor, dtype: str) -> tuple[Any, ...]:
    """What compiled loops over pairs take for the events."""
    *places, values = storage.events.paired.given
    return (*places, values.astype(dtype), EPS)


def _events(storage: SparseTensor, loss: Loss) -> tuple[Any, ...]:
    """What compiled loops over single events take for them."""
    events, starts = storage.events, offsets(storage.shape)
    columns = [column + first for column, first in zip(events.indices, starts, strict=False)]
    rows = np.ascontiguousarray(np.stack(columns, axis=1).astype(np.uint32))
    weights = events.own_weights()
    part = "whole" if weights.size else "surplus"
    derivative = loss.derivative_block("float64", part)
    cell_values = loss.values_block("float64") if weights.size else derivative
    values = events.values.astype(np.float64)
    return rows, values, weights, loss.value_block("float64", part), cell_values, derivative
