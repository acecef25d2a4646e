"""Descents on tiles of an array that is larger than memory, each read once.

Tile after tile comes into memory. Each gets a descent of its own, on random fibers of it, from
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
from smartcpd._methods.base import Method, Observer, Result, Settings, Task
from smartcpd._methods.descents import DEFAULT_TOL
from smartcpd._methods.growing_samples import MOST_CELLS
from smartcpd._methods.loop import Loop
from smartcpd._methods.merging import merged
from smartcpd._methods.one_tile import Found, TileTask, descended, descents_on
from smartcpd._methods.quasi_newton import Region
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.bounds import bounds, check_bounds
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError

CELLS_A_PARAMETER = 1 << 12
"""That descents see before a fit may end: what noise does to the model's values is then less than a
fiftieth of the noise of a cell."""
COMPILED_ROWS = 8


@dataclass
class TileProgress:
    """The position of a fit in the tiles of an epoch, and what it has seen of every row."""

    A: np.ndarray
    seen: np.ndarray
    """The weight of all cells of each row that the model is an average over."""
    seed: int
    """The seed of the order of tiles in this epoch."""
    position: int = 0
    cells: float = 0.0
    losses: list[tuple[float, float]] = field(default_factory=list)
    """Losses of the model on tiles that it had not seen, and what those tiles weigh."""
    kept: ClassVar = ("A", "seen", "seed", "position", "cells", "losses")


class TileDescents:
    """Descents with two tiles in memory: the one in work and the one that comes next."""

    kept = ("progress",)

    def __init__(
        self, problem: Problem, settings: Settings, observe: Observer, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.storage = problem.stored_as(TiledArray)
        self.settings = settings
        self.rng = rng
        self.tracker = Tracker(problem, settings, observe, rng)
        self.region = Region(problem.shape, problem.loss, *bounds(problem))
        self.glimpse = CellSample(problem)
        self.progress = TileProgress(np.empty((0, 0)), np.empty(0), 0)
        self.workers = self.storage.cluster
        self._rounds: Iterator[list[tuple[RowsByMode, Found | None]]] | None = None

    def begin(self, A: np.ndarray) -> None:
        """Have everything compiled before the clock starts."""
        rows = self.storage.drawn([min(n, COMPILED_ROWS) for n in self.problem.shape], self.rng)
        tile = self.storage.gathered(rows, self.problem.loss)
        if tile.n_observed:
            problem = replace(self.problem, storage=tile)
            inside = A[self._stacked(rows)]
            descents_on(problem, self.settings, inside, self.rng).compile(inside)
        self.tracker.begin_with(np.clip(A, self.region.low, self.region.high))

    def solve(self, start: Callable[[], np.ndarray]) -> Result:
        """Descend on tiles from where ``start`` leads to."""

        def loop() -> Status:
            A = start()
            self.progress = TileProgress(A, np.zeros(len(A)), self._seed())
            return Loop(self.tracker, self).run()

        # A fit that ended before, and is resumed, gets its progress back: the loss comes from it.
        result = self.tracker.follow(loop, self)
        if not result.status.converged:
            # Whatever stopped it, in a descent or between two of them, was the user.
            result = replace(result, ended=True)
        if self.progress.losses:
            return replace(result, loss=_late_mean(self.progress.losses))
        # A pass over everything would take longer than the fit, which ended before its first tile.
        seen = self.glimpse.estimate(stack(result.factors))
        return replace(result, loss=seen.loss, loss_error=seen.error)

    def look(self) -> None:
        """Tiles add rows to the history as they are finished."""

    def move(self) -> Status | None:
        """A round of tiles; a status once enough has been read, or everything has."""
        progress = self.progress
        if self._rounds is None:
            self._rounds = self._found_in(progress)
        for round_ in self._rounds:
            for rows, found in round_:
                if found is not None:
                    self._step(progress, rows, found)
                progress.position += 1
            return self._ended(progress) if self._enough(progress) else None
        if self.settings.stopping.tol > 0:
            return self._ended(progress)
        progress.seed, progress.position, self._rounds = self._seed(), 0, None
        return None

    def _found_in(self, run: TileProgress) -> Iterator[list[tuple[RowsByMode, Found | None]]]:
        """Descents on the tiles that are left of an epoch: one after another, or on a cluster as
        many at a time as it has workers, each from the model as it is then."""
        if self.workers is not None:
            tiles = self._tiles(run)
            while tasks := [
                self._task(run, rows) for rows in itertools.islice(tiles, self.workers.count)
            ]:
                founds = self.workers.tile_descents(self.problem, self.settings, tasks)
                yield [(task.rows, found) for task, found in zip(tasks, founds, strict=True)]
            return
        watch = self.tracker.check_time
        for rows, tile in self.storage.tiles(self._tiles(run), self.problem.loss, watch):
            problem = replace(self.problem, storage=tile)
            yield [(rows, descended(problem, self.settings, self._task(run, rows)))]

    def _task(self, run: TileProgress, rows: RowsByMode) -> TileTask:
        before = run.A[self._stacked(rows)]
        return TileTask(rows, before, self._share, self._seed(), self.tracker.elapsed)

    def _seed(self) -> int:
        return int(self.rng.integers(1 << 62))

    def _tiles(self, run: TileProgress) -> Iterator[RowsByMode]:
        """Yield the tiles of this epoch that no descent was made on yet."""
        epoch = self.storage.tiling.epoch(np.random.default_rng(run.seed))
        return itertools.islice(epoch, run.position, None)

    def _step(self, run: TileProgress, rows: RowsByMode, found: Found) -> None:
        """Move the model towards what a descent on a tile found."""
        where = self._stacked(rows)
        share = found.seen / np.maximum(run.seen[where] + found.seen, 1e-300)
        run.A = run.A.copy()
        run.A[where] += share[:, None] * (found.A - run.A[where])
        run.seen[where] += found.seen
        run.cells += found.weight
        run.losses.append((found.loss_before, found.weight))
        self.tracker.entries += found.entries
        self.tracker.epoch += 1
        # The latest factors are the best, whatever noise makes of their loss.
        self.tracker.begin_with(run.A)
        phase = f"tile {run.position + 1} of {self.storage.tiling.count}"
        # On cells that stay the same, so that rows of the history compare.
        self.tracker.note(run.A, self.glimpse.estimate(run.A), phase)

    def _stacked(self, rows: RowsByMode) -> np.ndarray:
        """RowsByMode of each mode as rows of the stacked factors."""
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

    def _enough(self, run: TileProgress) -> bool:
        return run.cells >= 0.99 * self._wanted and bool(run.seen.min() > 0)

    def _ended(self, run: TileProgress) -> Status:
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


def _late_mean(losses: list[tuple[float, float]]) -> float:
    """The mean over the tiles of the second half, when the model was good already."""
    late = np.array(losses[len(losses) // 2 :])
    return float(np.average(late[:, 0], weights=late[:, 1]))


def check_tiles(problem: Problem, solver: str) -> None:
    """Raise an error for data that is not read in tiles."""
    if not isinstance(problem.storage, TiledArray):
        raise IncompatibleError(
            f"Solver '{solver}' reads arrays that are larger than max_memory; got {problem}. "
            "Use solver='auto'."
        )
    check_bounds(problem, solver)


def _run(task: Task) -> Result:
    """Improve a start; superfluous components are merged first."""
    fit = TileDescents(task.problem, task.settings, task.observe, task.rng)
    A = stack(task.start)
    if A.shape[1] > task.problem.rank:
        A = merged(A, task.problem)
    fit.begin(A)
    return fit.solve(lambda: A)


tile_descents = Method(
    "tile-descents", _run, lambda problem: check_tiles(problem, "tile-descents"), reads_parts=True
)
