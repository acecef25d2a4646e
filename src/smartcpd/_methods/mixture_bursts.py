"""Bursts of steps over a sparse tensor, each of which improves a mixture in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage import SparseTensor
from smartcpd._kernels.lanes import padded
from smartcpd._kernels.mixture_counts import hot_cells_block
from smartcpd._kernels.mixture_passes import compiled_mixture_passes, compiled_paired_passes
from smartcpd._kernels.root_steps import compiled_root_steps
from smartcpd._methods.mixture import Mixture
from smartcpd.losses import Loss
from smartcpd.losses.base import EPS

HOT_CELLS, LEAST_HOT_CELLS = 16, 1 << 16
"""Bursts serve a model with up to so many large cells for each entry, or in all: passes over all
cells of a tensor are quicker where there are more."""
ROUGH, USUAL, FINE = 0.2, 0.05, 0.01
"""The model values from which on a cell is looked at by itself: while components are merged, while
they are sought, and where a descent is to end."""
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
    passes = ["mixture_passes.paired_passes", "merging.merge_components"]
    if is_curved(loss):
        passes += [f"mixture_passes.mixture_passes:{order}", f"root_steps.root_steps:{order}"]
    return (*passes, "bounded_rows.bounded_rows")


@dataclass(frozen=True)
class Bursts:
    """Steps over the entries of a tensor, under one loss."""

    order: int
    shape: tuple[int, ...]
    given: tuple[Any, ...]
    """What compiled steps take first."""
    pairs: tuple[Any, ...] = ()
    """What compiled passes over counts take first, where the loss is that of counts."""

    @classmethod
    def over(cls, storage: SparseTensor, loss: Loss, threshold: float = USUAL) -> Bursts:
        """Prepare the steps; cells whose model value is below the threshold are summed up by a
        quadratic, where they have no closed form.
        """
        events, starts = storage.events, offsets(storage.shape)
        columns = [column + first for column, first in zip(events.indices, starts, strict=False)]
        rows = np.ascontiguousarray(np.stack(columns, axis=1).astype(np.uint32))
        weights = events.own_weights()
        part = "whole" if weights.size else "surplus"
        value = loss.value_block("float64", part)
        derivative = loss.derivative_block("float64", part)
        cell_values = loss.values_block("float64") if weights.size else derivative
        most_hot = max(LEAST_HOT_CELLS, HOT_CELLS * len(events)) if is_curved(loss) else 0
        of_zeros = loss.value_block("float64"), loss.derivative_block("float64")
        assert loss.pseudo_count_slope is not None
        zeros = [loss.pseudo_count_slope, 1.0 / storage.heaviest, threshold]
        given = (
            rows,
            events.values.astype(np.float64),
            weights,
            (value, cell_values, derivative, *of_zeros),
            loss.params,
            np.array(zeros),
            hot_cells_block(most_hot > 0),
            most_hot,
            starts,
        )
        plain = loss.events_are_logs and not is_curved(loss) and not weights.size
        pairs = (*events.paired.given, EPS, starts) if plain else ()
        return cls(len(storage.shape), storage.shape, given, pairs)

    def improved(self, mixture: Mixture, n_passes: int, smoothing: float) -> tuple[float, Mixture]:
        """The sum of the loss over all cells after some passes of EM, and the mixture there; NaN
        where the model has too many large cells.
        """
        columns, rank = padded(mixture.columns), mixture.rank
        weights = np.zeros(columns.shape[1])
        weights[:rank] = mixture.weights
        if self.pairs:
            passes = compiled_paired_passes()
            loss = passes(*self.pairs, n_passes, smoothing, columns, weights)
        else:
            passes = compiled_mixture_passes(self.order)
            loss = passes(*self.given, rank, n_passes, smoothing, columns, weights)
        found = np.ascontiguousarray(columns[:, :rank])
        return loss, Mixture(found, weights[:rank].copy(), mixture.shape)

    def descended(self, mixture: Mixture, n_steps: int, least: float = 0.0) -> Descended:
        """Make ``n_steps`` quasi-Newton steps from a mixture, or fewer where a few in a row gain no
        more than ``least``.
        """
        A = padded(mixture.balanced())
        # With balanced modes, the columns of all but one have this product of sums.
        others = mixture.weights ** ((self.order - 1) / self.order)
        scales = np.ones(A.shape[1])
        scales[: mixture.rank] = np.sqrt(np.maximum(others, 1e-100))
        v = (np.sqrt(A) * scales).reshape(-1)
        S, Y = np.zeros((REMEMBERED, v.size)), np.zeros((REMEMBERED, v.size))
        memory = np.zeros(3)
        steps = compiled_root_steps(self.order)
        loss = steps(*self.given, mixture.rank, n_steps, least, scales, v, S, Y, memory)
        roots = (v.reshape(A.shape) / scales)[:, : mixture.rank]
        found = Mixture.of(roots * roots, mixture.shape)
        return Descended(found, loss, int(memory[1]), bool(memory[2]))
