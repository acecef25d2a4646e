"""What hot cells of a sparse tensor take off the counts of a mixture.

The loss of a cell without an event is taken as s m, whose sum over all cells follows from column
sums. Where it is less than that, what is too much is taken off at the *hot* cells, the few whose
model values are large. They are looked up now and then; a cell that grows in the meantime costs
more than it should, so that no step gains by going where nobody looks.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import Block, exact_subroutine, subroutine
from smartcpd._kernels.events import CHUNK
from smartcpd._kernels.hot_cells import find_hot_cells
from smartcpd._kernels.lanes import CACHE_LINE, fill_line, load_line, store, total

REFRESH = 10
"""After how many passes hot cells are looked up anew."""
MAX_VISITS = 1 << 22

find = exact_subroutine(find_hot_cells)


def look_up(A, rank, offsets, threshold, cells):
    """Write the rows of the cells above a threshold to ``cells``; return their number, or -1 if it
    is too large.
    """
    order = offsets.size - 1
    ranking = np.empty((len(A), rank), np.int64)
    for k in range(order):
        for r in range(rank):
            column = -A[offsets[k] : offsets[k + 1], r]
            ranking[offsets[k] : offsets[k + 1], r] = np.argsort(column)
    found = find(A, rank, offsets, ranking, threshold, MAX_VISITS, cells)
    for b in range(found):
        for k in range(order):
            cells[b, k] += offsets[k]
    return found


def find_none(A, rank, offsets, threshold, cells):
    """Take the place of `look_up` where the loss of all cells without an event is a line."""
    return 0


@cache
def hot_cells_block(are_there: bool) -> Block:
    """Compile the function that looks up hot cells, or one that is quick to compile where the loss
    has none.
    """
    function = look_up if are_there else find_none
    return kinds.compile_block(kinds.LookUp, function, function.__name__, "float64")


@subroutine
def cell_terms(A, rows, W, m):
    """Write the terms of some cells to W, and their sums, the model, to m."""
    line, nothing = CACHE_LINE // A.itemsize, A.dtype.type(0.0)
    for b in range(m.size):
        sums = fill_line(nothing)
        for r in range(0, A.shape[1], line):
            w = load_line(A, rows[b, 0], r)
            for k in range(1, rows.shape[1]):
                w = w * load_line(A, rows[b, k], r)
            store(W, b, r, w)
            sums = sums + w
        m[b] = total(sums)


@subroutine
def add_terms(W, rows, d, S):
    """Add d times the terms W of some cells to the counts S of their rows."""
    line = CACHE_LINE // S.itemsize
    for b in range(d.size):
        share = fill_line(d[b])
        for r in range(0, S.shape[1], line):
            w = load_line(W, b, r) * share
            for k in range(rows.shape[1]):
                store(S, rows[b, k], r, load_line(S, rows[b, k], r) + w)


@subroutine
def add_hot(background, offsets, rank, cells, hot, scale, A, S):
    """Take ``scale`` times the gradient of what hot cells cost less than s m, times A, from S;
    return what they cost less, or NaN where too many cells are hot.

    ``background`` is the loss of a zero, its derivative and their parameters, s, the model value
    from which on a cell is hot, and what looks such cells up. ``hot`` keeps their number, and is
    negative where they are to be looked up.
    """
    value, derivative, loss_p, slope, threshold, look_up = background
    if len(cells) == 0:
        return 0.0
    if hot[0] < 0.0:
        hot[0] = look_up(A.astype(np.float64), rank, offsets, threshold, cells)
        if hot[0] < 0.0:
            return np.nan
    W = np.empty((CHUNK, A.shape[1]), A.dtype)
    m, d, nothing = np.empty(CHUNK, A.dtype), np.empty(CHUNK, A.dtype), np.zeros(CHUNK, A.dtype)
    n_hot = int(hot[0])
    loss = 0.0
    for start in range(0, n_hot, CHUNK):
        n = min(CHUNK, n_hot - start)
        here = cells[start : start + n]
        cell_terms(A, here, W, m[:n])
        loss += value(nothing[:n], m[:n], loss_p)
        derivative(nothing[:n], m[:n], loss_p, d[:n])
        for b in range(n):
            loss -= slope * m[b]
            d[b] = -scale * (d[b] - slope)
        add_terms(W, here, d[:n], S)
    return loss


@subroutine
def saturated(background, cells, n_hot, A, S):
    """Add what hot cells lack of the curvature that cells with s m would have, times A, to S: with
    the derivative d of a zero's loss, events tell by d / s less about m, twice.
    """
    _, derivative, loss_p, slope, _, _ = background
    W = np.empty((CHUNK, A.shape[1]), A.dtype)
    m, d, nothing = np.empty(CHUNK, A.dtype), np.empty(CHUNK, A.dtype), np.zeros(CHUNK, A.dtype)
    for start in range(0, n_hot, CHUNK):
        n = min(CHUNK, n_hot - start)
        here = cells[start : start + n]
        cell_terms(A, here, W, m[:n])
        derivative(nothing[:n], m[:n], loss_p, d[:n])
        for b in range(n):
            d[b] = slope - d[b] * d[b] / slope
        add_terms(W, here, d[:n], S)
