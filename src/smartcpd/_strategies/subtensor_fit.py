"""A fit to some rows of every mode, extended to all of them.

A tensor made of some rows of every mode is small enough to be fitted from scratch. What it says of
those rows is extended to all of them, a mode at a time: the model is then good nearly everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from smartcpd._common.stacked import parts, stack
from smartcpd._data.storage import Dense, DenseStorage
from smartcpd._methods.base import Epoch, Settings
from smartcpd._methods.descents import FLOOR
from smartcpd._methods.quasi_newton import QuasiNewton, Region
from smartcpd._methods.tracker import EndedError, Tracker
from smartcpd._objectives.dense import DenseObjective
from smartcpd._problem.history import Record
from smartcpd._problem.problem import Problem
from smartcpd._strategies.compression import Scales, is_linear, least_squares_rows
from smartcpd._strategies.dense import DenseSearch

PART_CELLS = 1 << 20
"""Number of cells of the part that is fitted from scratch; it has at least `ROWS_A_COMPONENT` rows
a mode.
"""
ROWS_A_COMPONENT = 2
MOST_PART_CELLS = 1 << 24
EXTENSION_CELLS = 512
"""Number of cells a parameter of the row when a factor is extended to all rows."""
EXTENSION_STEPS = 6


@dataclass(frozen=True)
class Subtensor:
    """Some rows of every mode."""

    rows: list[np.ndarray]

    @classmethod
    def of(
        cls, storage: DenseStorage, rank: int, n_cells: int, rng: np.random.Generator
    ) -> Subtensor:
        """Random rows, as many of the long modes as ``n_cells`` allow; all of the short ones."""
        shape = storage.shape
        most = max(_edge(shape, n_cells), ROWS_A_COMPONENT * rank)
        most = min(most, _edge(shape, MOST_PART_CELLS))
        return cls(storage.drawn([min(size, most) for size in shape], rng))

    def fewer(self, n_cells: int, mode: int, size: int, rng: np.random.Generator) -> Subtensor:
        """All ``size`` rows of one mode, and so many of the others that ``n_cells`` result."""
        sizes = tuple(1 if k == mode else len(r) for k, r in enumerate(self.rows))
        most = _edge(sizes, max(1, n_cells // size))
        chosen = [np.sort(rng.permutation(r)[:most]) for r in self.rows]
        chosen[mode] = np.arange(size)
        return Subtensor(chosen)

    @property
    def name(self) -> str:
        return "x".join(str(len(r)) for r in self.rows)


def _edge(shape: tuple[int, ...], n_cells: int) -> int:
    """Return the largest number that the modes can be cut to for a tensor of ``n_cells``."""
    edge = 1
    for size in sorted(set(shape)):
        short = [s for s in shape if s < size]
        edge = int((n_cells / math.prod(short)) ** (1 / (len(shape) - len(short))) + 1e-9)
        if edge <= size:
            break
    return max(edge, 2)


class SubtensorFit:
    """The first leg of a fit that reads as little of a tensor as it can."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        tracker: Tracker,
        region: Region,
        rng: np.random.Generator,
    ) -> None:
        self.storage = problem.stored_as(DenseStorage)
        self.problem = problem
        self.settings = settings
        self.tracker = tracker
        self.region = region
        self.rng = rng

    def extended(self) -> np.ndarray:
        """Stacked factors of all rows."""
        part = Subtensor.of(self.storage, self.problem.rank, PART_CELLS, self.rng)
        factors = self.tracker.stage(lambda: self._fit_to(part))
        return self.tracker.stage(lambda: self._extend(part, factors))

    def _fit_to(self, part: Subtensor) -> list[np.ndarray]:
        storage = self.storage.gathered(part.rows, self.problem.loss)
        problem = replace(self.problem, storage=storage)

        def observe(report: Epoch) -> object:
            """Show the user the rows of the history; a model of the part would have another
            shape.
            """
            record = named(report.record)
            whole = Epoch(record, lambda: self._filled(part, report.factors()), report.is_best)
            return self.tracker.observe(whole)

        def named(record: Record) -> Record:
            return record._replace(phase=f"{part.name}: {record.phase}")

        fit = DenseSearch(problem, self._hasty(), self.rng, observe)
        result = fit.from_scratch()
        self.tracker.history.extend(named(row) for row in result.history)
        self.tracker.entries += fit.tracker.entries
        self.tracker.epoch += fit.tracker.epoch
        whole = stack(self._filled(part, result.factors))
        self.tracker.begin_with(np.clip(whole, self.region.low, self.region.high))
        if result.ended:
            # Whatever ended the inner fit ended this one, which may then be resumed.
            self.tracker.ended = True
            self.tracker.stopped = self.tracker.stopped or fit.tracker.stopped
            raise EndedError(result.status)
        return result.factors

    def _filled(self, part: Subtensor, factors: list[np.ndarray]) -> list[np.ndarray]:
        """Factors of the part as those of all rows: rows that it says nothing of are average."""
        filled = []
        for rows, size, F in zip(part.rows, self.problem.shape, factors, strict=True):
            A = np.repeat(F.mean(axis=0)[None], size, axis=0)
            A[rows] = F
            filled.append(A)
        return filled

    def _hasty(self) -> Settings:
        """Return hasty settings, since the part need not be fitted better than it represents the
        whole.
        """
        stopping = replace(self.settings.stopping, tol=100 * self.settings.stopping.tol)
        return replace(self.settings, stopping=stopping)

    def _extend(self, part: Subtensor, factors: list[np.ndarray]) -> np.ndarray:
        """The factors of all rows, a mode at a time, the others being known on the part."""
        whole = []
        for mode, size in enumerate(self.problem.shape):
            if len(part.rows[mode]) == size:
                whole.append(factors[mode])
                continue
            n_cells = min(EXTENSION_CELLS * size * self.problem.rank, MOST_PART_CELLS)
            self.tracker.check_time()
            around = part.fewer(n_cells, mode, size, self.rng)
            pairs = zip(factors, part.rows, around.rows, strict=True)
            known = [F[np.searchsorted(r, kept).clip(0, len(r) - 1)] for F, r, kept in pairs]
            known[mode] = parts(self.tracker.best, self.problem.shape)[mode].copy()
            cells = self.storage.gathered(around.rows, self.problem.loss)
            whole.append(self._rows(cells, known, mode))
        return stack(whole)

    def _rows(self, storage: Dense, known: list[np.ndarray], mode: int) -> np.ndarray:
        """Return one factor, given the others: by least squares, or where that does not apply by a
        few steps in which bounds hold the others where they are.
        """
        loss = self.problem.loss
        region = self.region
        low, high = (parts(b, self.problem.shape)[mode] for b in (region.low, region.high))
        if is_linear(loss) and loss.link(0.5) == 0.5 and not storage.weighted:
            scales = Scales.of(storage, loss)
            solved = least_squares_rows(storage.array, known, mode, scales)
            floor = FLOOR * np.abs(solved).mean(axis=0)
            return np.clip(np.maximum(solved, floor) if low.min() >= 0 else solved, low, high)
        lows, highs = ([b if k == mode else F for k, F in enumerate(known)] for b in (low, high))
        lows[mode], highs[mode] = (np.broadcast_to(b, known[mode].shape) for b in (low, high))
        held = Region(storage.shape, loss, np.concatenate(lows), np.concatenate(highs))
        objective = DenseObjective(storage, loss, self.settings.n_threads)
        newton = QuasiNewton(objective.gradient, held, stack(known), self.rng)
        for _ in range(EXTENSION_STEPS):
            newton.step()
            self.tracker.check_time()
        return parts(newton.point.A, storage.shape)[mode]
