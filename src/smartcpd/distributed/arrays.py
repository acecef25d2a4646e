"""A dense array that the workers of a cluster read: they descend on tiles and add up blocks of it.

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
from smartcpd._data.tiled.storage import Blocks, Where
from smartcpd._data.tiled.tiles import Rows
from smartcpd._methods.base import Settings, Task
from smartcpd._objectives.blocks import BlockSum, block_sum
from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.problem import Problem
from smartcpd._strategies.tile_descent import Found, TileTask, descended
from smartcpd.distributed.sharing import workers_of
from smartcpd.distributed.traffic import Traffic
from smartcpd.errors import ClusterError, IncompatibleError, InvalidDataError
from smartcpd.losses import Loss

TILES_A_WORKER = 2
"""At least so many tiles there are for each worker, so that all have something to do."""


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
        """What a fit may use of the smallest worker."""

    def for_task(self, task: Task) -> TileWorkers:
        return TileWorkers(self, task)

    def block_sums(
        self,
        storage: Blocks,
        loss: Loss,
        tasks: Sequence[tuple[Where, np.ndarray]],
        want_gradient: bool,
    ) -> list[BlockSum | None]:
        """The sums over blocks, in their order, each by some worker."""
        common = (slim(storage), loss, want_gradient, self.n_threads)
        found = self.ask(
            [(_block_answer, common, self.cells(storage, where), where, A) for where, A in tasks],
            [named(storage, [np.arange(s.start, s.stop) for s in where]) for where, _ in tasks],
            sent=sum(A.nbytes for _, A in tasks),
        )
        self.traffic.received += sum(f.gradient.nbytes for f in found if f is not None)
        return found

    def cells(self, storage: Blocks, where: Sequence[Any]) -> Any:
        """The cells at some slices or rows, where they can be had cheapest: of a Dask array its own
        workers have them (data, mask, weights); None for what the worker reads by itself."""
        parts = (storage.source.array, storage.mask, storage.weights)
        if type(parts[0]).__module__.split(".")[0] != "dask":
            return None
        return [None if part is None else self._taken(part, where) for part in parts]

    def _taken(self, array: Any, where: Sequence[Any]) -> Any:
        for mode, chosen in enumerate(where):
            array = array[(*[slice(None)] * mode, chosen)]
        return self.client.compute(array) if hasattr(array, "dask") else array

    def ask(self, tasks: Sequence[tuple[Any, ...]], names: Sequence[str], sent: int) -> list[Any]:
        """What functions of arguments return, in their order; each returns its seconds as well.

        ``names`` are what messages call the parts of the array that tasks are about.
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
    """Descents on tiles, made by the workers of a cluster for one run of a solver."""

    def __init__(self, cluster: ArrayCluster, task: Task) -> None:
        assert isinstance(task.problem.storage, Blocks)
        self.cluster = cluster
        self.count = cluster.count
        self.storage = task.problem.storage
        self.common = (
            replace(task.problem, storage=slim(self.storage)),
            replace(task.settings, journal=Journal(), n_threads=cluster.n_threads),
        )

    def founds(self, tasks: Sequence[TileTask]) -> list[Found | None]:
        """What descents found, in the order of tasks; None for tiles of which nothing was observed.

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


def named(storage: Blocks, rows: Rows) -> str:
    """What a message calls some rows of every mode."""
    extent = " x ".join(f"{r[0]} to {r[-1]}" for r in rows)
    size = math.prod(len(r) for r in rows) * storage.cell_bytes
    return f"the cells {extent} ({readable(size)})"


def slim(storage: Blocks) -> Blocks:
    """Without what was computed here, which would be sent along with every task."""
    return Blocks(storage.source, storage.max_memory, storage.mask, storage.weights)


def _tile_answer(common: tuple[Problem, Settings], cells: Any, task: TileTask) -> Any:
    """Runs on a worker; the seconds it takes are those after the tile is there."""
    problem, settings = common
    storage = problem.storage
    assert isinstance(storage, Blocks)
    with threads.limited_to(threads.resolve(settings.n_threads)):
        loss = problem.loss
        tile = storage.gathered(task.rows, loss) if cells is None else _dense(cells, loss)
        began = time.perf_counter()
        found = descended(replace(problem, storage=tile), settings, task)
        return found, time.perf_counter() - began


def _block_answer(
    common: tuple[Blocks, Loss, bool, int], cells: Any, where: Where, A: np.ndarray
) -> Any:
    """Runs on a worker, as `_tile_answer`."""
    storage, loss, want_gradient, n_threads = common
    with threads.limited_to(threads.resolve(n_threads)):
        block = storage.block(where, loss) if cells is None else _dense(cells, loss)
        began = time.perf_counter()
        found = block_sum(block, loss, A, want_gradient, threads.resolve(n_threads))
        return found, time.perf_counter() - began


def _dense(cells: list[Any], loss: Loss) -> Dense:
    """A part of a Dask array as its workers have it."""
    try:
        array, mask, weights = cells
        return Dense.of_block(array, mask, weights, loss, None)
    except InvalidDataError as error:
        where = "Cells are counted within the part of the array that a worker had."
        raise InvalidDataError(f"{error} {where}") from None


def fit_array_on(client: Any, X: Any, parameters: dict[str, Any], fit: Callable[..., Any]) -> Any:
    """What ``fit`` returns for an array that all workers can read, which descend on its tiles."""
    source = source_of(X)
    assert source is not None
    if source.title == "an HDF5 data set" or isinstance(X, np.memmap):
        raise IncompatibleError(
            f"Workers cannot share {source.title}; pass a Zarr or Dask array, for example "
            "dask.array.from_zarr(path)."
        )
    cluster = ArrayCluster(client)
    storage = Blocks(
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
    """The same error, with what can be done about it."""
    how = (
        f"The checkpoint is in {path}: go on from it with resume=True and another client."
        if path is not None
        else "The work is lost; with checkpoint=path another client could go on with it."
    )
    return ClusterError(f"{error} {how}")
