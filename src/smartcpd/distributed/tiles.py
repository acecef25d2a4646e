"""Descents on the tiles of a dense array, made by the workers of a cluster.

A task is a function of its tile, the factors of its rows and a seed: one whose worker is lost is
made again by another, with the same result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from smartcpd import threads
from smartcpd.blocks.source import source_of
from smartcpd.blocks.storage import Blocks
from smartcpd.blocks.tiles import Rows
from smartcpd.checkpoints.journal import Journal
from smartcpd.distributed.pool import Traffic
from smartcpd.errors import ClusterError, IncompatibleError
from smartcpd.labels import LabelledTensor
from smartcpd.memory import budget, readable
from smartcpd.problem import Problem
from smartcpd.solvers.base import Settings, Task
from smartcpd.solvers.tile_descent import Found, TileTask, descended
from smartcpd.storage.dense import Dense

TILES_A_WORKER = 2
"""At least so many tiles there are for each worker, so that all have something to do."""


class TileWorkers:
    """The workers of a fit to an array that all of them can read."""

    def __init__(self, client: Any, traffic: Traffic, task: Task) -> None:
        problem, settings = task.problem, task.settings
        assert isinstance(problem.storage, Blocks)
        self.client = client
        self.storage = problem.storage
        self.traffic = traffic
        workers = client.scheduler_info()["workers"].values()
        self.count = len(workers)
        self.n_threads = min(int(worker["nthreads"]) for worker in workers)
        # Without what was computed here, which would be sent along with every task.
        slim = Blocks(
            self.storage.source, self.storage.max_memory, self.storage.mask, self.storage.weights
        )
        self.common = (
            replace(problem, storage=slim),
            replace(settings, journal=Journal(), n_threads=self.n_threads),
        )

    def founds(self, tasks: Sequence[TileTask]) -> list[Found | None]:
        """What descents found, in the order of tasks; None for tiles of which nothing was observed.

        All are made at the same time, as far as there are workers.
        """
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        began = time.perf_counter()
        try:
            futures = [
                self.client.submit(_answer, self.common, self._tile(task.rows), task, pure=False)
                for task in tasks
            ]
            answers = self.client.gather(futures)
        except KilledWorker as error:
            size = readable(self.storage.tiling.cells * self.storage.cell_bytes)
            raise ClusterError(
                f"Several workers died with the same tile of up to {size} ({error}). If it is too "
                "large for them, set a smaller max_memory."
            ) from error
        except (CommClosedError, TimeoutError, _cancelled()) as error:
            raise ClusterError(f"The scheduler is lost ({error}).") from error
        traffic = self.traffic
        traffic.rounds += 1
        traffic.sent += sum(task.before.nbytes for task in tasks)
        traffic.received += sum(found.A.nbytes for found, _ in answers if found is not None)
        traffic.seconds += time.perf_counter() - began
        traffic.computed += max(seconds for _, seconds in answers)
        return [found for found, _ in answers]

    def _tile(self, rows: Rows) -> Any:
        """The cells of a tile where they can be had cheapest: of a Dask array its own workers have
        them; anything else is read by the worker that needs it."""
        parts = (self.storage.source.array, self.storage.mask, self.storage.weights)
        if type(parts[0]).__module__.split(".")[0] != "dask":
            return None
        return [None if part is None else self._taken(part, rows) for part in parts]

    def _taken(self, array: Any, rows: Rows) -> Any:
        for mode, chosen in enumerate(rows):
            array = array[(*[slice(None)] * mode, chosen)]
        return self.client.compute(array) if hasattr(array, "dask") else array


def _cancelled() -> type[BaseException]:
    from concurrent.futures import CancelledError

    return CancelledError


def _answer(common: tuple[Problem, Settings], tile: Any, task: TileTask) -> Any:
    """Runs on a worker; the seconds it takes are those after the tile is there."""
    problem, settings = common
    storage = problem.storage
    assert isinstance(storage, Blocks)
    with threads.limited_to(threads.resolve(settings.n_threads)):
        cells = storage.gathered(task.rows, problem.loss) if tile is None else _dense(tile, problem)
        began = time.perf_counter()
        found = descended(replace(problem, storage=cells), settings, task)
        return found, time.perf_counter() - began


def _dense(tile: list[Any], problem: Problem) -> Dense:
    array, mask, weights = tile
    missing = mask is not None and not np.any(mask)
    if missing or (array.dtype.kind == "f" and np.isnan(array).all()):
        return Dense(array, np.zeros(array.shape, bool))
    cells = Dense.of(array, mask, weights)
    cells.check(problem.loss)
    return cells


def fit_tiles_on(client: Any, X: Any, modes: Any, parameters: dict[str, Any]) -> Any:
    """As `fit`, of an array that all workers can read, with descents on tiles made by them."""
    from smartcpd.fitting import fit  # which knows this module

    source = source_of(X)
    assert source is not None
    if source.title == "an HDF5 data set" or isinstance(X, np.memmap):
        raise IncompatibleError(
            f"Workers cannot share {source.title}; pass a Zarr or Dask array, for example "
            "dask.array.from_zarr(path)."
        )
    traffic = Traffic()
    workers = client.scheduler_info()["workers"].values()
    allowed = parameters.pop("max_memory") or _least_memory(workers)
    storage = Blocks(
        source,
        budget(allowed),
        parameters.pop("mask"),
        parameters.pop("weights"),
        workers=partial(TileWorkers, client, traffic),
        tile_cells=source.n_cells / (TILES_A_WORKER * max(len(workers), 1)),
    )
    try:
        found = fit(storage if modes is None else LabelledTensor(storage, modes), **parameters)
    except ClusterError as error:
        raise with_checkpoint(error, parameters.get("checkpoint")) from error
    each = readable((traffic.sent + traffic.received) / max(traffic.rounds, 1))
    remark = (
        f"On {len(workers)} workers: {traffic.rounds} rounds with {each} each, "
        f"{100 * traffic.share:.0f} % of their time reading and communication."
    )
    status = found.status._replace(reason=f"{found.status.reason} {remark}")
    return replace(found, status=status, traffic=traffic)


def _least_memory(workers: Any) -> int:
    """Of the workers, half of the smallest; that of this machine where they have no limit."""
    limits = [int(w["memory_limit"]) for w in workers if w.get("memory_limit")]
    return min(limits) // 2 if limits else budget(None)


def with_checkpoint(error: ClusterError, path: Any) -> ClusterError:
    """The same error, with what can be done about it."""
    how = (
        f"The checkpoint is in {path}: go on from it with resume=True and another client."
        if path is not None
        else "The work is lost; with checkpoint=path another client could go on with it."
    )
    return ClusterError(f"{error} {how}")
