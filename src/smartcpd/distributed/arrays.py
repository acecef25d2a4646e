"""Fits of a dense array whose tiles and blocks are read by the workers of a cluster.

A task is a function of its cells, the factors of their rows and a seed: one whose worker is lost is
made again by another, with the same result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._common.memory import budget, readable
from smartcpd._data.storage.dense import Dense
from smartcpd._data.tiled.source import source_of
from smartcpd._data.tiled.storage import TiledArray, Where
from smartcpd._data.tiled.tiles import RowsByMode
from smartcpd._methods.base import Settings
from smartcpd._methods.one_tile import Found, TileTask, descended
from smartcpd._objectives.tiled import BlockSum, block_sum
from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.problem import Problem
from smartcpd.distributed.sharing import workers_of
from smartcpd.distributed.traffic import Traffic
from smartcpd.errors import ClusterError, IncompatibleError, InvalidDataError
from smartcpd.losses import Loss

TILES_A_WORKER = 2
"""Least number of tiles for each worker, so that all have something to do."""


class ArrayCluster:
    """A cluster whose workers can all read an array."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.traffic = Traffic()
        workers = list(workers_of(client).values())
        self.count = len(workers)
        self.n_threads = min(int(worker["nthreads"]) for worker in workers)
        limits = [int(w["memory_limit"]) for w in workers if w.get("memory_limit")]
        self.memory = min(limits) // 2 if limits else budget(None)
        """The bytes that a fit may use on the smallest worker."""

    def for_fit(self, problem: Problem, settings: Settings) -> TileWorkers:
        """The workers, as one fit asks them for descents on tiles."""
        return TileWorkers(self, problem, settings)

    def block_sums(
        self,
        storage: TiledArray,
        loss: Loss,
        tasks: Sequence[tuple[Where, np.ndarray]],
        want_gradient: bool,
    ) -> list[BlockSum | None]:
        """Return the sums over blocks, in their order, each computed by some worker."""
        common = (slim(storage), loss, want_gradient, self.n_threads)
        found = self.ask(
            [(_block_answer, common, self.cells(storage, where), where, A) for where, A in tasks],
            [named(storage, [np.arange(s.start, s.stop) for s in where]) for where, _ in tasks],
            sent=sum(A.nbytes for _, A in tasks),
        )
        self.traffic.received += sum(f.gradient.nbytes for f in found if f is not None)
        return found

    def cells(self, storage: TiledArray, where: Sequence[Any]) -> Any:
        """Return the cells at some slices or rows: data, mask and weights.

        Those of a Dask array stay with the workers that have them; None stands for what a worker
        reads by itself.
        """
        parts = (storage.source.array, storage.mask, storage.weights)
        if type(parts[0]).__module__.split(".")[0] != "dask":
            return None
        return [None if part is None else self._taken(part, where) for part in parts]

    def _taken(self, array: Any, where: Sequence[Any]) -> Any:
        for mode, chosen in enumerate(where):
            array = array[(*[slice(None)] * mode, chosen)]
        return self.client.compute(array) if hasattr(array, "dask") else array

    def ask(self, tasks: Sequence[tuple[Any, ...]], names: Sequence[str], sent: int) -> list[Any]:
        """Return what tasks return, in their order; a task is a function and its arguments.

        Every function returns its seconds as well. ``names`` are what messages call the parts of
        the array that tasks are about.
        """
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        began = time.perf_counter()
        try:
            futures = [self.client.submit(*task, pure=False) for task in tasks]
            answers = self.client.gather(futures)
        except (KilledWorker, MemoryError) as error:
            failed = [n for n, f in zip(names, futures, strict=True) if f.status == "error"]
            what = "had no memory left for" if isinstance(error, MemoryError) else "died with"
            raise ClusterError(
                f"Workers {what} {', '.join(failed) or 'a part of the array'}. If it is too large "
                "for them, set a smaller max_memory, or use workers with more memory."
            ) from error
        except (CommClosedError, TimeoutError, CancelledError) as error:
            raise ClusterError(f"The scheduler is lost ({error}).") from error
        self.traffic.rounds += 1
        self.traffic.sent += sent
        self.traffic.seconds += time.perf_counter() - began
        busy = sum(seconds for _, seconds in answers) / self.count
        self.traffic.computed += max(busy, *(seconds for _, seconds in answers))
        return [found for found, _ in answers]


class TileWorkers:
    """Runs descents on tiles on the workers of a cluster, for one run of a solver."""

    def __init__(self, cluster: ArrayCluster, problem: Problem, settings: Settings) -> None:
        self.cluster = cluster
        self.count = cluster.count
        self.storage = problem.stored_as(TiledArray)
        self.common = (
            replace(problem, storage=slim(self.storage)),
            replace(settings, journal=Journal(), n_threads=cluster.n_threads),
        )

    def founds(self, tasks: Sequence[TileTask]) -> list[Found | None]:
        """Return what descents found, in the order of tasks; None for tiles without observed cells.

        All are made at the same time, as far as there are workers.
        """
        found = self.cluster.ask(
            [
                (_tile_answer, self.common, self.cluster.cells(self.storage, task.rows), task)
                for task in tasks
            ],
            [named(self.storage, task.rows) for task in tasks],
            sent=sum(task.before.nbytes for task in tasks),
        )
        self.cluster.traffic.received += sum(f.A.nbytes for f in found if f is not None)
        return found


def named(storage: TiledArray, rows: RowsByMode) -> str:
    """What a message calls some rows of every mode."""
    extent = " x ".join(f"{r[0]} to {r[-1]}" for r in rows)
    size = math.prod(len(r) for r in rows) * storage.cell_bytes
    return f"the cells {extent} ({readable(size)})"


def slim(storage: TiledArray) -> TiledArray:
    """Without what was computed here, which would be sent along with every task."""
    return TiledArray(storage.source, storage.max_memory, storage.mask, storage.weights)


def _tile_answer(common: tuple[Problem, Settings], cells: Any, task: TileTask) -> Any:
    """Descend on a tile, on a worker; the seconds returned begin when the tile is there."""
    problem, settings = common
    storage = problem.stored_as(TiledArray)
    with threads.limited_to(threads.resolve(settings.n_threads)):
        loss = problem.loss
        tile = storage.gathered(task.rows, loss) if cells is None else _dense(cells, loss)
        began = time.perf_counter()
        found = descended(replace(problem, storage=tile), settings, task)
        return found, time.perf_counter() - began


def _block_answer(
    common: tuple[TiledArray, Loss, bool, int], cells: Any, where: Where, A: np.ndarray
) -> Any:
    """Sum over a block, on a worker; the seconds returned begin when the block is there."""
    storage, loss, want_gradient, n_threads = common
    with threads.limited_to(threads.resolve(n_threads)):
        block = storage.block(where, loss) if cells is None else _dense(cells, loss)
        began = time.perf_counter()
        found = block_sum(block, loss, A, want_gradient, threads.resolve(n_threads))
        return found, time.perf_counter() - began


def _dense(cells: list[Any], loss: Loss) -> Dense:
    """Return a part of a Dask array as a dense storage, on the worker that has it."""
    try:
        array, mask, weights = cells
        return Dense.of_block(array, mask, weights, loss, None)
    except InvalidDataError as error:
        where = "Cells are counted within the part of the array that a worker had."
        raise InvalidDataError(f"{error} {where}") from None


def fit_array_on(client: Any, X: Any, parameters: dict[str, Any], fit: Callable[..., Any]) -> Any:
    """Fit an array that all workers can read, by descents on its tiles."""
    source = source_of(X)
    assert source is not None
    if source.title == "an HDF5 data set" or isinstance(X, np.memmap):
        raise IncompatibleError(
            f"Workers cannot share {source.title}; pass a Zarr or Dask array, for example "
            "dask.array.from_zarr(path)."
        )
    cluster = ArrayCluster(client)
    storage = TiledArray(
        source,
        budget(parameters.pop("max_memory") or cluster.memory),
        parameters.pop("mask"),
        parameters.pop("weights"),
        cluster=cluster,
        tile_cells=source.n_cells / (TILES_A_WORKER * cluster.count),
    )
    try:
        found = fit(storage, **parameters)
    except ClusterError as error:
        raise with_checkpoint(error, parameters.get("checkpoint")) from error
    traffic = cluster.traffic
    each = readable((traffic.sent + traffic.received) / max(traffic.rounds, 1))
    remark = (
        f"On {cluster.count} workers: {traffic.rounds} rounds with {each} each, "
        f"{100 * traffic.share:.0f} % of their time reading and communication."
    )
    status = found.status._replace(reason=f"{found.status.reason} {remark}")
    return replace(found, status=status, traffic=traffic)


def with_checkpoint(error: ClusterError, path: Any) -> ClusterError:
    """Return the same error with the advice to resume from the checkpoint, if there is one."""
    how = (
        f"The checkpoint is in {path}: go on from it with resume=True and another client."
        if path is not None
        else "The work is lost; with checkpoint=path another client could go on with it."
    )
    return ClusterError(f"{error} {how}")
