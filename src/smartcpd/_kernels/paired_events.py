"""Expected counts of events that are sorted into pairs of an outer and an inner part.

The model at a cell is the inner product of two vectors: the products of the outer part's rows and
of the inner part's. The first is computed once for all events of an outer part, the second is read
from a table. What an event adds to the counts is collected in the same two places, so that each
costs two products of vectors whatever the number of modes. The events add -x log(m + floor) to the
loss.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.elementary import log
from smartcpd._kernels.events import CHUNK
from smartcpd._kernels.lanes import (
    CACHE_LINE,
    LANES,
    fill,
    fill_line,
    load,
    load_line,
    store,
    total,
)


@subroutine
def write_products(A, rows, T):
    """Write the products of some rows of A, one from each mode, to T."""
    for i in range(len(rows)):
        for r in range(0, A.shape[1], LANES):
            w = load(A, rows[i, 0], r)
            for k in range(1, rows.shape[1]):
                w = w * load(A, rows[i, k], r)
            store(T, i, r, w)


@subroutine
def add_to_rows(T, G, rows, S):
    """Add the products of T and G to all the rows of S that T is the product of."""
    for i in range(len(rows)):
        for r in range(0, T.shape[1], LANES):
            w = load(T, i, r) * load(G, i, r)
            for k in range(rows.shape[1]):
                store(S, rows[i, k], r, load(S, rows[i, k], r) + w)


@subroutine
def outer_line(A, outer, g, at):
    """A line of the products of an outer part's rows."""
    w = load_line(A, outer[g, 0], at)
    for k in range(1, outer.shape[1]):
        w = w * load_line(A, outer[g, k], at)
    return w


@subroutine
def add_outer_line(w, outer, g, at, S):
    """Add a line to all the rows of an outer part."""
    for k in range(outer.shape[1]):
        store(S, outer[g, k], at, load_line(S, outer[g, k], at) + w)


@subroutine
def add_logs(x, end, seen, m, loss):
    """Take x log m of the last events before ``end`` from a loss. A chunk is added up in the
    precision of the pass, twice as quick in float32, and chunks in float64.
    """
    here, part = x[end - seen : end], m.dtype.type(0.0)
    for c in range(seen):
        part += here[c] * log(m[c])
    return loss - part


@subroutine
def add_short(outer, starts, partners, x, first, last, floor, A, T, G, S):
    """Do the work of `add_paired` for rows of one cache line."""
    m = np.empty(CHUNK, A.dtype)
    loss, seen = 0.0, 0
    for g in range(first, last):
        mine, sums = outer_line(A, outer, g, 0), fill_line(floor - floor)
        for b in range(starts[g], starts[g + 1]):
            yours = load_line(T, partners[b], 0)
            m[seen] = total(mine * yours) + floor
            share = fill_line(x[b] / m[seen])
            sums = sums + share * yours
            store(G, partners[b], 0, load_line(G, partners[b], 0) + share * mine)
            seen += 1
            if seen == CHUNK:
                loss, seen = add_logs(x, b + 1, seen, m, loss), 0
        add_outer_line(mine * sums, outer, g, 0, S)
    return add_logs(x, starts[last], seen, m, loss)


@subroutine
def add_double(outer, starts, partners, x, first, last, floor, A, T, G, S):
    """Do the work of `add_paired` for rows of two cache lines."""
    line = A.shape[1] // 2
    m = np.empty(CHUNK, A.dtype)
    loss, seen = 0.0, 0
    for g in range(first, last):
        mine, mine_too = outer_line(A, outer, g, 0), outer_line(A, outer, g, line)
        sums = sums_too = fill_line(floor - floor)
        for b in range(starts[g], starts[g + 1]):
            j = partners[b]
            yours, yours_too = load_line(T, j, 0), load_line(T, j, line)
            m[seen] = total(mine * yours + mine_too * yours_too) + floor
            share = fill_line(x[b] / m[seen])
            sums, sums_too = sums + share * yours, sums_too + share * yours_too
            store(G, j, 0, load_line(G, j, 0) + share * mine)
            store(G, j, line, load_line(G, j, line) + share * mine_too)
            seen += 1
            if seen == CHUNK:
                loss, seen = add_logs(x, b + 1, seen, m, loss), 0
        add_outer_line(mine * sums, outer, g, 0, S)
        add_outer_line(mine_too * sums_too, outer, g, line, S)
    return add_logs(x, starts[last], seen, m, loss)


@subroutine
def add_long(outer, starts, partners, x, first, last, floor, A, T, G, S):
    """Do the work of `add_paired` for rows of any length."""
    width = A.shape[1]
    mine, sums = np.empty((1, width), A.dtype), np.empty((1, width), A.dtype)
    m = np.empty(CHUNK, A.dtype)
    nothing = floor - floor
    loss, seen = 0.0, 0
    for g in range(first, last):
        for r in range(0, width, LANES):
            w = load(A, outer[g, 0], r)
            for k in range(1, outer.shape[1]):
                w = w * load(A, outer[g, k], r)
            store(mine, 0, r, w)
            store(sums, 0, r, fill(nothing))
        for b in range(starts[g], starts[g + 1]):
            j = partners[b]
            lanes = fill(nothing)
            for r in range(0, width, LANES):
                lanes = lanes + load(mine, 0, r) * load(T, j, r)
            m[seen] = total(lanes) + floor
            share = fill(x[b] / m[seen])
            for r in range(0, width, LANES):
                store(sums, 0, r, load(sums, 0, r) + share * load(T, j, r))
                store(G, j, r, load(G, j, r) + share * load(mine, 0, r))
            seen += 1
            if seen == CHUNK:
                loss, seen = add_logs(x, b + 1, seen, m, loss), 0
        for r in range(0, width, LANES):
            w = load(mine, 0, r) * load(sums, 0, r)
            for k in range(outer.shape[1]):
                store(S, outer[g, k], r, load(S, outer[g, k], r) + w)
    return add_logs(x, starts[last], seen, m, loss)


@subroutine
def add_paired(outer, starts, partners, x, first, last, floor, A, T, G, S):
    """Add the counts of the events of some outer parts to the rows of the outer modes in S, and
    divided by T to the inner parts in G; return what they add to the loss. T has the products of
    the inner parts.
    """
    floor = A.dtype.type(floor)
    n_bytes = A.shape[1] * A.itemsize
    if n_bytes == CACHE_LINE:
        return add_short(outer, starts, partners, x, first, last, floor, A, T, G, S)
    if n_bytes == 2 * CACHE_LINE:
        return add_double(outer, starts, partners, x, first, last, floor, A, T, G, S)
    return add_long(outer, starts, partners, x, first, last, floor, A, T, G, S)


def paired_pass(
    outer: kinds.Rows,
    inner: kinds.Rows,
    starts: kinds.Integers,
    partners: kinds.Places,
    x: kinds.Vector,
    bounds: kinds.Integers,
    floor: kinds.Real,
    A: kinds.Matrix,
    values: kinds.Doubles,
    S: kinds.Stack,
):
    """Add what the outer parts from bounds[g] on add to the loss to ``values[g]``, and their
    counts to ``S[g]``. A and S have padded rows.
    """
    T = np.empty((len(inner), A.shape[1]), A.dtype)
    write_products(A, inner, T)
    for g in range(bounds.size - 1):
        G = np.zeros(T.shape, A.dtype)
        values[g] += add_paired(
            outer, starts, partners, x, bounds[g], bounds[g + 1], floor, A, T, G, S[g]
        )
        add_to_rows(T, G, inner, S[g])


@cache
def compiled_paired_pass() -> Any:
    return kinds.compile_annotated(paired_pass)
