"""Fits of a dense array whose tiles and blocks are read by the workers of a cluster.

A task is a function of its cells, the factors of their rows and a seed: one whose worker is lost is
made again by another, with the same result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._common.memory import budget, readable
from smartcpd._data.storage.dense import Dense
from smartcpd._data.tiled.source import Source
from smartcpd._data.tiled.storage import TiledArray, Where
from smartcpd._methods.base import Settings
from smartcpd._methods.one_tile import Found, TileTask, descended
from smartcpd._objectives.tiled import BlockSum, block_sum
from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.problem import Problem
from smartcpd.distributed.workers import Workers, least_memory
from smartcpd.errors import ClusterError, IncompatibleError, InvalidDataError
from smartcpd.losses import Loss

TILES_A_WORKER = 2
"""Least number of tiles for each worker, so that all have something to do."""


@dataclass(frozen=True)
class Question:
    """What the tasks of a round have in common."""

    read: Callable[..., Dense]
    """Reads a part of the array and checks it for the loss."""
    loss: Loss
    compute: Callable[[Dense, Any], Any]
    """Computes what is asked from the part and from what a task knows besides."""
    n_threads: int

    def answer(self, cells: Any, where: Sequence[Any], task: Any) -> tuple[Any, float]:
        """Answer a task, on a worker; the seconds returned begin when the part is there."""
        with threads.limited_to(threads.resolve(self.n_threads)):
            part = self.read(where, self.loss) if cells is None else _dense(cells, self.loss)
            began = time.perf_counter()
            return self.compute(part, task), time.perf_counter() - began


class ArrayWorkers(Workers):
    """Workers that can all read an array, and are asked about parts of it."""

    def remark(self) -> str:
        return self.traffic.remark(f"{self.count} workers", "reading and communication")

    def tile_descents(
        self, problem: Problem, settings: Settings, tasks: Sequence[TileTask]
    ) -> list[Found | None]:
        """Return what descents found, in the order of tasks; None for tiles without observed cells.

        All are made at the same time, as far as there are workers.
        """
        storage = problem.stored_as(TiledArray)
        slim = without_results(storage)
        settings = replace(settings, journal=Journal(), n_threads=self.n_threads)
        compute = partial(_tile_answer, replace(problem, storage=slim), settings)
        found = self.ask(
            storage,
            Question(slim.gathered, problem.loss, compute, self.n_threads),
            [(task.rows, task) for task in tasks],
            sent=sum(task.before.nbytes for task in tasks),
        )
        self.traffic.received += sum(f.A.nbytes for f in found if f is not None)
        return found

    def block_sums(
        self,
        storage: TiledArray,
        loss: Loss,
        tasks: Sequence[tuple[Where, np.ndarray]],
        want_gradient: bool,
    ) -> list[BlockSum | None]:
        """Return the sums over blocks, in their order, each computed by some worker."""
        compute = partial(_block_answer, loss, want_gradient, self.n_threads)
        question = Question(without_results(storage).block, loss, compute, self.n_threads)
        found = self.ask(storage, question, tasks, sent=sum(A.nbytes for _, A in tasks))
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

    def ask(
        self, storage: TiledArray, question: Question, tasks: Sequence[tuple[Any, Any]], sent: int
    ) -> list[Any]:
        """Return what workers compute, in the order of tasks.

        A task has the slices or rows of the part of the array that it is about, and what is known
        of it besides.
        """
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        known = [(self.cells(storage, where), where, task) for where, task in tasks]
        began = time.perf_counter()
        try:
            futures = [self.client.submit(question.answer, *one, pure=False) for one in known]
            answers = self.client.gather(futures)
        except (KilledWorker, MemoryError) as error:
            pairs = zip(tasks, futures, strict=True)
            failed = [named(storage, where) for (where, _), f in pairs if f.status == "error"]
            what = "had no memory left for" if isinstance(error, MemoryError) else "died with"
            raise ClusterError(
                f"Workers {what} {', '.join(failed) or 'a part of the array'}. If it is too large "
                "for them, set a smaller max_memory, or use workers with more memory."
            ) from error
        except (CommClosedError, TimeoutError, CancelledError) as error:
            raise ClusterError(f"The scheduler is lost ({error}).") from error
        busy = sum(seconds for _, seconds in answers) / self.count
        self.traffic.sent += sent
        self.traffic.add_round(began, max(busy, *(seconds for _, seconds in answers)))
        return [found for found, _ in answers]


def named(storage: TiledArray, where: Sequence[Any]) -> str:
    """Return what a message calls the part of an array at some slices or rows."""
    rows = [np.arange(size)[chosen] for size, chosen in zip(storage.shape, where, strict=True)]
    extent = " x ".join(f"{r[0]} to {r[-1]}" for r in rows)
    size = math.prod(len(r) for r in rows) * storage.cell_bytes
    return f"the cells {extent} ({readable(size)})"


def without_results(storage: TiledArray) -> TiledArray:
    """Return a storage without what was computed here, which every task would carry along."""
    return TiledArray(storage.source, storage.max_memory, storage.mask, storage.weights)


def _tile_answer(problem: Problem, settings: Settings, tile: Dense, task: TileTask) -> Found | None:
    return descended(replace(problem, storage=tile), settings, task)


def _block_answer(
    loss: Loss, want_gradient: bool, n_threads: int, block: Dense, A: np.ndarray
) -> BlockSum | None:
    return block_sum(block, loss, A, want_gradient, threads.resolve(n_threads))


def _dense(cells: list[Any], loss: Loss) -> Dense:
    """Return a part of a Dask array as a dense storage, on the worker that has it."""
    try:
        array, mask, weights = cells
        return Dense.of_block(array, mask, weights, loss, None)
    except InvalidDataError as error:
        where = "Cells are counted within the part of the array that a worker had."
        raise InvalidDataError(f"{error} {where}") from None


def shared_array(client: Any, source: Source, parameters: dict[str, Any]) -> TiledArray:
    """Return an array that all workers can read, with what the parameters of a fit say of it."""
    if source.title == "an HDF5 data set" or isinstance(source.array, np.memmap):
        raise IncompatibleError(
            f"Workers cannot share {source.title}; pass a Zarr or Dask array, for example "
            "dask.array.from_zarr(path)."
        )
    workers = ArrayWorkers(client)
    memory = least_memory(workers.initial.values())
    return TiledArray(
        source,
        budget(parameters.pop("max_memory") or (memory and memory // 2)),
        parameters.pop("mask"),
        parameters.pop("weights"),
        cluster=workers,
        tile_cells=source.n_cells / (TILES_A_WORKER * workers.count),
    )
