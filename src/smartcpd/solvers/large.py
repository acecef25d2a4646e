"""Dense data too large for many full passes: a part of it, then samples of fibers that grow.

A tensor made of some rows of every mode is small enough to be fitted from scratch. What it says of
those rows is extended to all of them, a mode at a time. From there on the model is good nearly
everywhere, and is improved on random fibers of the whole tensor: as few as its present error asks
for at first, then several times as many, up to all of them or to what time allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from smartcpd.core import Scales, is_linear, least_squares_rows
from smartcpd.history import Record, Status
from smartcpd.model import CPModel
from smartcpd.problem import Problem
from smartcpd.solvers.base import Observer, Report, Result, Settings, Solver, Task
from smartcpd.solvers.core import CoreFit, check_dense
from smartcpd.solvers.descent import FINISHED, FLOOR, Candidate, Descents
from smartcpd.solvers.quasi_newton import QuasiNewton, Region
from smartcpd.solvers.tracker import EndedError, Tracker
from smartcpd.stack import parts, stack
from smartcpd.start import random_factors
from smartcpd.storage import Dense

FULL_PASSES = 1 << 23
"""Cells up to which passes over all of them are cheap, and nothing of this is needed."""
PART_CELLS = 1 << 20
"""Of the part that is fitted from scratch; it has at least `ROWS_A_COMPONENT` rows a mode."""
ROWS_A_COMPONENT = 2
MOST_PART_CELLS = 1 << 24
EXTENSION_CELLS = 512
"""Cells a parameter of the row when a factor is extended to all rows."""
EXTENSION_STEPS = 6
FIRST_CELLS = 512
"""Cells a parameter in the first sample of fibers: the error that sampling adds to the model's
values is then a small share of the noise of a cell ..."""
GROWTH = 4
"""... and halves with each further sample."""
SAMPLED = 5e-2
"""What the last steps on a sample may still gain, relative to the resolution of that sample."""
MOST_CELLS = 1 << 27
"""In the largest sample; passes over more would take seconds each."""
STEPS_A_SAMPLE = 12
"""About how many passes a sample takes, to see whether the time will do."""


@dataclass(frozen=True)
class Part:
    """Some rows of every mode."""

    rows: list[np.ndarray]

    @classmethod
    def of(cls, shape: tuple[int, ...], rank: int, n_cells: int, rng: np.random.Generator) -> Part:
        """Random rows, as many of the long modes as ``n_cells`` allow; all of the short ones."""
        most = max(_edge(shape, n_cells), ROWS_A_COMPONENT * rank)
        most = min(most, _edge(shape, MOST_PART_CELLS))
        sizes = [min(size, most) for size in shape]
        return cls([np.sort(rng.permutation(i)[:n]) for i, n in zip(shape, sizes, strict=True)])

    def of_storage(self, storage: Dense) -> Dense:
        """A copy of these cells; the tensor itself is read at no others."""
        rows = np.ix_(*self.rows)
        weights = None if storage.weights is None else storage.weights[rows]
        return Dense(np.ascontiguousarray(storage.array[rows]), weights)

    def fewer(self, n_cells: int, mode: int, size: int, rng: np.random.Generator) -> Part:
        """All ``size`` rows of one mode, and so many of the others that ``n_cells`` result."""
        sizes = tuple(1 if k == mode else len(r) for k, r in enumerate(self.rows))
        most = _edge(sizes, max(1, n_cells // size))
        chosen = [np.sort(rng.permutation(r)[:most]) for r in self.rows]
        chosen[mode] = np.arange(size)
        return Part(chosen)

    @property
    def name(self) -> str:
        return "x".join(str(len(r)) for r in self.rows)


def _edge(shape: tuple[int, ...], n_cells: int) -> int:
    """The largest number that the modes can be cut to for a tensor of ``n_cells``."""
    edge = 1
    for size in sorted(set(shape)):
        short = [s for s in shape if s < size]
        edge = int((n_cells / math.prod(short)) ** (1 / (len(shape) - len(short))) + 1e-9)
        if edge <= size:
            break
    return max(edge, 2)


class LargeFit:
    """A fit that reads as little of a tensor as it can."""

    def __init__(
        self, problem: Problem, settings: Settings, rng: np.random.Generator, observe: Observer
    ) -> None:
        assert isinstance(problem.storage, Dense)
        self.problem = problem
        self.storage = problem.storage
        self.settings = settings
        self.rng = rng
        self.tracker = Tracker(problem, settings, observe, rng)
        self.descents = Descents(problem, settings, self.tracker, rng)

    def from_scratch(self) -> Result:
        A = stack(random_factors(self.problem, self.problem.rank, self.rng))
        A = self.descents.inside(A)
        self.descents.compile(A)
        self.tracker.begin_with(A)
        return self.tracker.follow(lambda: self._improved(self._extended(*self._fitted_part())))

    def from_start(self, start: list[np.ndarray]) -> Result:
        A = stack(start)
        if A.shape[1] > self.problem.rank:
            A = self.descents.reduced(A)
        self.descents.compile(A)
        self.tracker.begin_with(A)
        return self.tracker.follow(lambda: self._improved(A))

    def _fitted_part(self) -> tuple[Part, list[np.ndarray]]:
        """Some rows of every mode, and a fit to them."""
        part = Part.of(self.problem.shape, self.problem.rank, PART_CELLS, self.rng)
        return part, self.tracker.stage(lambda: self._fit_to(part))

    def _fit_to(self, part: Part) -> list[np.ndarray]:
        storage = part.of_storage(self.storage)
        problem = replace(self.problem, storage=storage)

        def observe(report: Report) -> object:
            """The user sees the rows; a model of the part would have another shape."""
            record = named(report.record)
            return self.tracker.observe(Report(record, lambda: self._filled(part, report.model())))

        def named(record: Record) -> Record:
            return record._replace(phase=f"{part.name}: {record.phase}")

        fit = CoreFit(problem, self._hasty(), self.rng, observe)
        result = fit.from_scratch()
        self.tracker.history.extend(named(row) for row in result.history)
        self.tracker.entries += fit.tracker.entries
        self.tracker.epoch += fit.tracker.epoch
        whole = stack(self._filled(part, CPModel(result.factors)).factors)
        self.tracker.begin_with(self.descents.inside(whole))
        if result.ended:
            raise EndedError(result.status)
        return result.factors

    def _filled(self, part: Part, model: CPModel) -> CPModel:
        """A model of the part as one of all rows: those that it says nothing of are average."""
        factors = []
        for rows, size, F in zip(part.rows, self.problem.shape, model.factors, strict=True):
            A = np.repeat(F.mean(axis=0)[None], size, axis=0)
            A[rows] = F
            factors.append(A)
        return CPModel(factors, loss_function=self.problem.loss)

    def _hasty(self) -> Settings:
        """The part need not be fitted better than it represents the whole."""
        stopping = replace(self.settings.stopping, tol=100 * self.settings.stopping.tol)
        return replace(self.settings, stopping=stopping)

    def _extended(self, part: Part, factors: list[np.ndarray]) -> np.ndarray:
        """The factors of all rows, a mode at a time, the others being known on the part."""
        return self.tracker.stage(lambda: self._extend(part, factors))

    def _extend(self, part: Part, factors: list[np.ndarray]) -> np.ndarray:
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
            whole.append(self._rows(around.of_storage(self.storage), known, mode))
        return stack(whole)

    def _rows(self, storage: Dense, known: list[np.ndarray], mode: int) -> np.ndarray:
        """One factor, given the others: by least squares, or where that does not apply by a few
        steps in which bounds hold the others where they are."""
        loss = self.problem.loss
        region = self.descents.region
        low, high = (parts(b, self.problem.shape)[mode] for b in (region.low, region.high))
        if is_linear(loss) and loss.link(0.5) == 0.5 and not storage.weighted:
            scales = Scales.of(storage, loss)
            solved = least_squares_rows(storage.array, known, mode, scales)
            floor = FLOOR * np.abs(solved).mean(axis=0)
            return np.clip(np.maximum(solved, floor) if low.min() >= 0 else solved, low, high)
        lows, highs = ([b if k == mode else F for k, F in enumerate(known)] for b in (low, high))
        lows[mode], highs[mode] = (np.broadcast_to(b, known[mode].shape) for b in (low, high))
        held = Region(storage.shape, loss, np.concatenate(lows), np.concatenate(highs))
        objective = replace(self.descents.objective, storage=storage)
        newton = QuasiNewton(objective.gradient, held, stack(known), self.rng)
        for _ in range(EXTENSION_STEPS):
            newton.step()
            self.tracker.check_time()
        return parts(newton.point.A, storage.shape)[mode]

    def _improved(self, A: np.ndarray) -> Status:
        """Descents on samples of fibers that grow, until the data or the time is used up."""
        whole, n_cells = self.descents.objective, self.storage.n_cells
        wanted: float = min(FIRST_CELLS * self.problem.freedom, MOST_CELLS)
        while True:
            self.descents.objective = whole.sampled(wanted, self.rng)
            cells = self.descents.objective.n_cells
            full = cells == n_cells
            phase = "finish" if full else f"{cells / n_cells:.2g} of the cells"
            # What another sample adds to the loss of the last one says nothing about progress.
            self.tracker.begin_with(A)
            began, entries = self.tracker.elapsed, self.tracker.entries
            found = self.descents.run(A, phase, FINISHED if full else SAMPLED)
            A = found.A
            a_cell = (self.tracker.elapsed - began) / max(self.tracker.entries - entries, 1)
            if full:
                return found.status()
            wanted = GROWTH * cells
            if 2 * wanted > n_cells:
                wanted = n_cells
            if wanted > MOST_CELLS or not self._affordable(a_cell * wanted):
                return self._sampled(found, cells)

    def _affordable(self, seconds: float) -> bool:
        """Whether a sample whose passes take this long can be finished in time."""
        limit = self.settings.stopping.max_time
        if limit is None:
            return True
        left = limit - self.tracker.elapsed
        return STEPS_A_SAMPLE * seconds < left

    def _sampled(self, found: Candidate, cells: int) -> Status:
        """The status of a fit that ends with a sample."""
        if not found.settled:
            return found.status()
        share = cells / self.storage.n_cells
        more = "" if self.settings.stopping.max_time is None else " More max_time allows more."
        return Status(
            True,
            f"Converged on a sample: the loss settled at {found.loss:.6g} on random fibers with "
            f"{share:.2g} of the cells, {cells / self.problem.freedom:.0f} a parameter.{more}",
        )


def _run(task: Task) -> Result:
    """Fit from scratch, or improve a start of the user's."""
    fit = LargeFit(task.problem, task.settings, task.rng, task.observe)
    return fit.from_start(task.start) if task.settings.given_start else fit.from_scratch()


large = Solver("large", _run, lambda problem: check_dense(problem, "large"), compares_starts=True)
