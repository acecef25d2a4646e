"""What all cells of a sparse tensor expect of the components of a mixture, in one pass.

The loss of a cell without an event is taken as s m, whose sum over all cells follows from column
sums. Where it is less than that, what is too much is taken off at the *hot* cells, the few whose
model values are large. They are looked up now and then; a cell that grows in the meantime costs
more than it should, so that no step gains by going where nobody looks.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import Block, exact_subroutine, variant_subroutine
from smartcpd._kernels.copying import copy
from smartcpd._kernels.events import CHUNK
from smartcpd._kernels.expected_counts import make_add_counts, make_terms
from smartcpd._kernels.hot_cells import find_hot_cells
from smartcpd._kernels.weights import sum_in_order, weighted_terms

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


def make_counted(order: int) -> tuple[Any, Any]:
    """The pass below for tensors of one order, and what hot cells lack of its curvature."""
    terms, add_counts = make_terms(order), make_add_counts(order)

    @variant_subroutine(order)
    def add_cells(rows, x, w, slope, value, cell_values, derivative, loss_p, scale, A, S):
        """Take ``scale`` times the gradient of the loss of some cells less ``slope`` m, times A,
        from S; return that loss. With weights, the blocks give the whole loss of a cell, and that
        of a zero is taken off where the sum over all cells has it.
        """
        W = np.empty((CHUNK, A.shape[1]))
        m, d, spare = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
        loss = 0.0
        for start in range(0, len(rows), CHUNK):
            n = min(CHUNK, len(rows) - start)
            here = rows[start : start + n]
            terms(A, here, W, m[:n])
            if w.size > 0:
                own = w[start : start + n]
                data = x[start : start + n].copy()
                weighted_terms(cell_values, data, m[:n], loss_p, own, True, spare[:n], d[:n])
                loss += sum_in_order(d[:n])
                copy(x[start : start + n], data)
                weighted_terms(derivative, data, m[:n], loss_p, own, True, spare[:n], d[:n])
            else:
                loss += value(x[start : start + n], m[:n], loss_p)
                derivative(x[start : start + n], m[:n], loss_p, d[:n])
            for b in range(n):
                loss -= slope * m[b]
                d[b] = -scale * (d[b] - slope)
            add_counts(W, here, d[:n], S)
        return loss

    @variant_subroutine(order)
    def counted(
        rows, x, own_weights, blocks, loss_p, zeros, look_up, offsets, rank, cells, hot, scale, A, S
    ):
        """Take ``scale`` times the gradient of the loss, times A, from S, but for that of the sum
        of s m; return the loss without it, or NaN where too many cells are hot.

        ``zeros`` holds s, the share of the largest weight that a cell without an event has, and
        the model value from which on such a cell is hot. ``hot`` keeps the number of hot cells,
        and is negative where they are to be looked up.
        """
        value, cell_values, derivative, zero_value, zero_derivative = blocks
        loss = add_cells(
            rows, x, own_weights, 0.0, value, cell_values, derivative, loss_p, scale, A, S
        )
        if len(cells) == 0:
            return loss
        if hot[0] < 0.0:
            hot[0] = look_up(A, rank, offsets, zeros[2], cells)
            if hot[0] < 0.0:
                return np.nan
        n_hot = int(hot[0])
        nothing, none = np.zeros(n_hot), np.empty(0)
        return loss + add_cells(
            cells[:n_hot],
            nothing,
            none,
            zeros[0],
            zero_value,
            zero_derivative,
            zero_derivative,
            loss_p,
            scale,
            A,
            S,
        )

    @variant_subroutine(order)
    def saturated(cells, n_hot, slope, zero_derivative, loss_p, A, S):
        """Add what hot cells lack of the curvature that cells with s m would have, times A, to S:
        with the derivative d of a zero's loss, events tell by d / s less about m, twice.
        """
        W = np.empty((CHUNK, A.shape[1]))
        m, d, nothing = np.empty(CHUNK), np.empty(CHUNK), np.zeros(CHUNK)
        for start in range(0, n_hot, CHUNK):
            n = min(CHUNK, n_hot - start)
            here = cells[start : start + n]
            terms(A, here, W, m[:n])
            zero_derivative(nothing[:n], m[:n], loss_p, d[:n])
            for b in range(n):
                d[b] = slope - d[b] * d[b] / slope
            add_counts(W, here, d[:n], S)

    return counted, saturated
