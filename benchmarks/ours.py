"""Our own fits of sparse data, timed like the peers': when was which loss reached."""

from __future__ import annotations

import numpy as np

from benchmarks.real_data import SparseData
from smartcpd import SparseTensor
from smartcpd._problem.history import History, Record


def tensor_of(data: SparseData) -> SparseTensor:
    """Counts in the smallest integers that hold them."""
    smallest = np.min_scalar_type(int(data.values.max()))
    return SparseTensor(data.indices, data.values.astype(smallest), data.shape)


def first_at(history: History, target: float) -> Record | None:
    """The row in which a model of the wanted rank first had the target loss."""
    return next((r for r in history if r.loss <= target and "components" not in r.phase), None)


def seconds_to(history: History, target: float) -> float:
    """When that was; infinity if never."""
    row = first_at(history, target)
    return float("inf") if row is None else row.time


def trace_of(history: History) -> list[tuple[float, float]]:
    """(seconds, loss) of a model of the wanted rank, as it went on."""
    return [(r.time, r.loss) for r in history if "components" not in r.phase and r.time > 0]


def shortened(
    traces: dict[str, list[tuple[float, float]]], most: int = 80
) -> dict[str, list[tuple[float, float]]]:
    """Traces with about so many points, the last one among them, of the lowest loss so far."""
    short = {}
    for name, trace in traces.items():
        lowest = np.minimum.accumulate([loss for _, loss in trace])
        points = list(zip([s for s, _ in trace], lowest.tolist(), strict=True))
        step = -(-len(points) // most)
        short[name] = [*points[:-1:step], points[-1]]
    return short
