"""Sums of the loss over the nonzeros of a sparse tensor, some or all, and their gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._common.threads import share
from smartcpd._data.storage.events import Events
from smartcpd._data.storage.paired import MOST_PAIRED
from smartcpd._kernels.event_curvature import compiled_event_curvature_pass
from smartcpd._kernels.events import CHUNK, compiled_event_pass
from smartcpd._kernels.expected_counts import compiled_count_pass
from smartcpd._kernels.lanes import padded
from smartcpd._kernels.paired_events import compiled_paired_pass
from smartcpd.losses import Loss
from smartcpd.losses.base import EPS

EVENTS_WORTH_THREADS = 1 << 14
MAX_GROUPS = 8


class Sum(NamedTuple):
    """A sum of losses over cells, its gradient (stacked like the factors) and its uncertainty."""

    total: float
    gradient: np.ndarray
    variance: float = 0.0


def event_sum(
    events: Events,
    loss: Loss,
    part: str,
    A: np.ndarray,
    want_gradient: bool,
    n_threads: int,
    positions: np.ndarray | None = None,
    convex: bool = False,
) -> Sum:
    """Sum over all events, or over those at ``positions``, with gradients for all modes.

    ``part`` says what each of them adds, as for `Loss.value_block`; the whole loss or the surplus
    if the events have weights, which multiply the loss but not the background. With ``convex`` the
    gradient is that of the loss's convex part.
    """
    weighted = events.weights is not None
    assert not weighted or part in ("whole", "surplus")
    block = loss.convex_block if convex else loss.derivative_block
    derivative = block("float64", "whole" if weighted else part)
    if weighted:
        value, cell_values = loss.value_block("float64"), loss.values_block("float64")
    else:
        value, cell_values = loss.value_block("float64", part), derivative
    count = len(events) if positions is None else positions.size
    bounds = _bounds(count, A.shape[0])
    n_groups = bounds.size - 1
    wide = padded(A)
    values = np.zeros(n_groups)
    G = np.zeros((n_groups if want_gradient else 0, *wide.shape))
    compiled = compiled_event_pass(len(events.shape))
    where = events.unpack_block("float64"), events.handle(), offsets(events.shape)
    chosen = np.empty(0, np.int64) if positions is None else positions
    terms = (
        events.own_weights(),
        part == "surplus",
        value,
        cell_values,
        derivative,
        loss.params,
        want_gradient,
        wide,
    )

    def work(first: int, end: int) -> None:
        compiled(*where, chosen, bounds[first : end + 1], *terms, values[first:end], G[first:end])

    share(work, n_groups, n_threads if count >= EVENTS_WORTH_THREADS else 1)
    for of_group in G[1:]:
        G[0] += of_group
    return Sum(float(values.sum()), G[0, :, : A.shape[1]] if want_gradient else A)


def scaled_event_sum(events: Events, loss: Loss, part: str, A: np.ndarray, n_threads: int) -> Sum:
    """Sum over all events like `event_sum`, with the gradient times the factors, entry by entry.

    That takes one product of rows an event, whatever the order. The events have no weights.
    """
    assert events.weights is None
    wide = padded(A)
    compiled: Any
    given: tuple[Any, ...]
    terms: tuple[Any, ...]
    if part == "surplus" and loss.events_are_logs and len(events) <= MOST_PAIRED:
        pairs = events.paired
        # Each group has a table of sums over inner parts, too.
        n_groups = _bounds(len(events), max(A.shape[0], len(pairs.inner))).size - 1
        compiled, bounds = compiled_paired_pass(), pairs.bounds(n_groups)
        given, terms = pairs.given, (EPS,)
    else:
        bounds = _bounds(len(events), A.shape[0])
        n_groups = bounds.size - 1
        compiled = compiled_count_pass(len(events.shape))
        given = events.unpack_block("float64"), events.handle(), offsets(events.shape)
        blocks = loss.value_block("float64", part), loss.derivative_block("float64", part)
        terms = (*blocks, loss.params)
    values = np.zeros(n_groups)
    S = np.zeros((n_groups, *wide.shape))

    def work(first: int, end: int) -> None:
        groups = slice(first, end)
        compiled(*given, bounds[first : end + 1], *terms, wide, values[groups], S[groups])

    share(work, n_groups, n_threads if len(events) >= EVENTS_WORTH_THREADS else 1)
    return Sum(float(values.sum()), -S.sum(axis=0)[:, : A.shape[1]])


def event_curvature_product(
    events: Events, loss: Loss, behind: float, A: np.ndarray, V: np.ndarray, n_threads: int
) -> np.ndarray:
    """Return J' W J V over all events, W being their curvature less ``behind``, that of the
    background.
    """
    bounds = _bounds(len(events), A.shape[0])
    n_groups = bounds.size - 1
    wide = padded(A)
    G = np.zeros((n_groups, *wide.shape))
    compiled = compiled_event_curvature_pass(len(events.shape))
    where = events.unpack_block("float64"), events.handle(), offsets(events.shape)
    terms = (
        events.own_weights(),
        loss.curvature_block("float64"),
        loss.params,
        behind,
        wide,
        padded(V),
    )

    def work(first: int, end: int) -> None:
        compiled(*where, bounds[first : end + 1], *terms, G[first:end])

    share(work, n_groups, n_threads if len(events) >= EVENTS_WORTH_THREADS else 1)
    for of_group in G[1:]:
        G[0] += of_group
    return np.ascontiguousarray(G[0, :, : A.shape[1]])


def _bounds(count: int, n_rows: int) -> np.ndarray:
    """Return where groups of events begin and end, whatever the number of threads.

    Every group has a gradient of its own, so there are few where factors are long.
    """
    n_groups = 1
    while n_groups < MAX_GROUPS and count >= 8 * n_groups * max(n_rows, CHUNK):
        n_groups *= 2
    return np.linspace(0, count, n_groups + 1).astype(np.int64)
