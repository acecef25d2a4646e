"""Dense data larger than memory: a part of it, then tiles of blocks, each read once.

A fit to some rows of every mode is extended to all of them (`part_fit`), which reads few blocks.
Then tile after tile comes into memory. Each gets a descent of its own, on random fibers of it, from
where the model is; and the model moves towards what that found, row by row, by the share that the
tile has in all cells of the row so far. Averages of optima over parts of the data that are drawn
evenly are as good as the optimum over all of those parts, and the loss of the model on a tile that
it has not seen is an honest estimate of its loss everywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from smartcpd._common.stacked import offsets, stack
from smartcpd._data.tiled import TiledArray
from smartcpd._data.tiled.tiles import RowsByMode
from smartcpd._methods.base import Result, Solver, Task
from smartcpd._methods.descents import DEFAULT_TOL
from smartcpd._methods.merging import merged
from smartcpd._methods.quasi_newton import Region
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.bounds import bounds, check_bounds
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.starts import random_factors
from smartcpd._strategies.subsampled import MOST_CELLS
from smartcpd._strategies.subtensor_fit import PartFit
from smartcpd._strategies.tile_descent import Found, TileTask, descended, descents_on
from smartcpd.errors import IncompatibleError

CELLS_A_PARAMETER = 1 << 12
"""That descents see before a fit may end: what noise does to the model's values is then less than a
fiftieth of the noise of a cell."""
COMPILED_ROWS = 8


@dataclass
class _Run:
    """Where a fit is in the tiles of an epoch, and what it has seen of every row."""

    A: np.ndarray
    seen: np.ndarray
    """The weight of all cells of each row that the model is an average over."""
    seed: int
    """Of the order of tiles in this epoch."""
    position: int = 0
    cells: float = 0.0
    losses: list[tuple[float, float]] = field(default_factory=list)
    """Of the model on tiles that it had not seen, and what those weigh."""
    kept: ClassVar = ("A", "seen", "seed", "position", "cells", "losses")


class BlockFit:
    """A fit that has two tiles in memory: the one it works on and the one that comes next."""

    def __init__(self, task: Task) -> None:
        assert isinstance(task.problem.storage, TiledArray)
        self.problem = task.problem
        self.storage = task.problem.storage
        self.settings = task.settings
        self.rng = task.rng
        self.tracker = Tracker(task.problem, task.settings, task.observe, task.rng)
        self.region = Region(task.problem.shape, task.problem.loss, *bounds(task.problem))
        self.glimpse = CellSample(task.problem)
        self.loss: Estimate | None = None
        self.workers = None if self.storage.cluster is None else self.storage.cluster.for_task(task)
        self.part = PartFit(task.problem, task.settings, self.tracker, self.region, task.rng)

    def from_scratch(self) -> Result:
        A = stack(random_factors(self.problem, self.problem.rank, self.rng))
        self._begin(A)
        return self._finished(lambda: self._rounds(self.part.extended()))

    def from_start(self, start: list[np.ndarray]) -> Result:
        A = stack(start)
        if A.shape[1] > self.problem.rank:
            A = merged(A, self.problem)
        self._begin(A)
        return self._finished(lambda: self._rounds(A))

    def _begin(self, A: np.ndarray) -> None:
        """Have everything compiled before the clock starts."""
        rows = self.storage.drawn([min(n, COMPILED_ROWS) for n in self.problem.shape], self.rng)
        tile = self.storage.gathered(rows, self.problem.loss)
        if tile.n_observed:
            problem = replace(self.problem, storage=tile)
            inside = A[self._stacked(rows)]
            descents_on(problem, self.settings, inside, self.rng).compile(inside)
        self.tracker.begin_with(np.clip(A, self.region.low, self.region.high))

    def _finished(self, loop: Callable[[], Status]) -> Result:
        result = self.tracker.follow(loop)
        if not result.status.converged:
            # Whatever stopped it, in a descent or between two of them, was the user.
            result = replace(result, ended=True)
        return result if self.loss is None else replace(result, loss=self.loss.loss)

    def _rounds(self, A: np.ndarray) -> Status:
        """Tiles until enough has been read, or everything has."""
        run = _Run(A, np.zeros(len(A)), self._seed())
        seen = self.tracker.loop(run)
        while True:
            for round_ in self._found_in(run):
                for rows, found in round_:
                    if found is not None:
                        self._move(run, rows, found)
                    run.position += 1
                if self._enough(run):
                    return self._ended(run)
                seen()
            if self.settings.stopping.tol > 0:
                return self._ended(run)
            run.seed, run.position = self._seed(), 0

    def _found_in(self, run: _Run) -> Iterator[list[tuple[RowsByMode, Found | None]]]:
        """Descents on the tiles that are left of an epoch: one after another, or on a cluster as
        many at a time as it has workers, each from the model as it is then."""
        if self.workers is not None:
            tiles = self._tiles(run)
            while tasks := [
                self._task(run, rows) for rows in itertools.islice(tiles, self.workers.count)
            ]:
                founds = self.workers.founds(tasks)
                yield [(task.rows, found) for task, found in zip(tasks, founds, strict=True)]
            return
        for rows, tile in self.storage.tiles(self._tiles(run), self.problem.loss):
            problem = replace(self.problem, storage=tile)
            yield [(rows, descended(problem, self.settings, self._task(run, rows)))]

    def _task(self, run: _Run, rows: RowsByMode) -> TileTask:
        before = run.A[self._stacked(rows)]
        return TileTask(rows, before, self._share, self._seed(), self.tracker.elapsed)

    def _seed(self) -> int:
        return int(self.rng.integers(1 << 62))

    def _tiles(self, run: _Run) -> Iterator[RowsByMode]:
        """Those of this epoch that are left."""
        epoch = self.storage.tiling.epoch(np.random.default_rng(run.seed))
        return itertools.islice(epoch, run.position, None)

    def _move(self, run: _Run, rows: RowsByMode, found: Found) -> None:
        """The model, moved towards what a descent found."""
        where = self._stacked(rows)
        share = found.seen / np.maximum(run.seen[where] + found.seen, 1e-300)
        run.A = run.A.copy()
        run.A[where] += share[:, None] * (found.A - run.A[where])
        run.seen[where] += found.seen
        run.cells += found.weight
        run.losses.append((found.loss_before, found.weight))
        self.loss = _late_mean(run.losses)
        self.tracker.entries += found.entries
        self.tracker.epoch += 1
        # The latest factors are the best, whatever noise makes of their loss.
        self.tracker.begin_with(run.A)
        phase = f"tile {run.position + 1} of {self.storage.tiling.count}"
        # On cells that stay the same, so that rows of the history compare.
        self.tracker.note(run.A, self.glimpse.estimate(run.A), phase)

    def _stacked(self, rows: RowsByMode) -> np.ndarray:
        """Rows of each mode as rows of the stacked factors."""
        starts = offsets(self.problem.shape)[:-1]
        return np.concatenate([r + start for r, start in zip(rows, starts, strict=True)])

    @property
    def _wanted(self) -> float:
        """Cells that are enough; users ask for more or less care by tol."""
        tol = self.settings.stopping.tol
        return CELLS_A_PARAMETER * self.problem.freedom * (DEFAULT_TOL / tol if tol else math.inf)

    @property
    def _share(self) -> float:
        """Cells of a tile that a descent sees: so many that the tiles which it takes to see every
        row are enough."""
        return min(MOST_CELLS, self._wanted / max(self.storage.tiling.groups))

    def _enough(self, run: _Run) -> bool:
        return run.cells >= 0.99 * self._wanted and bool(run.seen.min() > 0)

    def _ended(self, run: _Run) -> Status:
        """The status, after rows that nothing is known of have been cleared."""
        empty = run.seen == 0
        remark = ""
        if empty.any():
            run.A[empty] = np.clip(0.0, self.region.low, self.region.high)[empty]
            self.tracker.begin_with(run.A)
            remark = f" No cell was observed in {int(empty.sum()):,} rows: the model is 0 there."
        tiles, all_tiles = len(run.losses), self.storage.tiling.count
        return Status(
            True,
            f"Converged on {tiles} of {all_tiles} tiles, of which {run.cells:.3g} cells were used, "
            f"{run.cells / self.problem.freedom:.0f} a parameter.{remark}",
        )


def _late_mean(losses: list[tuple[float, float]]) -> Estimate:
    """The mean over the tiles of the second half, when the model was good already, and its standard
    error."""
    late = np.array(losses[len(losses) // 2 :])
    mean = float(np.average(late[:, 0], weights=late[:, 1]))
    error = float(late[:, 0].std(ddof=1) / math.sqrt(len(late))) if len(late) > 1 else 0.0
    return Estimate(mean, error)


def check(problem: Problem) -> None:
    if not isinstance(problem.storage, TiledArray):
        raise IncompatibleError(
            f"Solver 'blocks' reads arrays that are larger than max_memory; got {problem}. "
            "Use solver='auto'."
        )
    check_bounds(problem, "blocks")
    problem.storage.fit_needs(problem.rank).check()


def _run(task: Task) -> Result:
    """Fit from scratch, or improve a start of the user's."""
    fit = BlockFit(task)
    return fit.from_start(task.start) if task.settings.given_start else fit.from_scratch()


blocks = Solver("blocks", _run, check, compares_starts=True, reads_parts=True)
