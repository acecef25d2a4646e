"""Expected counts of components, from one pass over the nonzeros of a sparse tensor.

A cell with terms w_r = a_r b_r c_r ... and derivative d adds -d w_r to the counts of component r in
the row of every mode. That is one product of rows for all modes, where the gradient takes one for
each; divided by the factors, the counts are the gradient.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import variant_subroutine
from smartcpd._kernels.events import CHUNK
from smartcpd._kernels.lanes import LANES, fill, load, store, total


def make_terms(order: int) -> Any:
    """Make the function that computes the terms of some cells, and their sums: the model."""

    @variant_subroutine(order)
    def terms(A, rows, W, m):
        for b in range(m.size):
            sums = fill(0.0)
            for r in range(0, A.shape[1], LANES):
                w = load(A, rows[b, 0], r)
                for k in range(1, order):
                    w = w * load(A, rows[b, k], r)
                store(W, b, r, w)
                sums = sums + w
            m[b] = total(sums)

    return terms


def make_add_counts(order: int) -> Any:
    """Make the function that adds d times the terms W of some cells to the counts S of their
    rows.
    """

    @variant_subroutine(order)
    def add_counts(W, rows, d, S):
        for b in range(d.size):
            share = fill(d[b])
            for r in range(0, S.shape[1], LANES):
                w = load(W, b, r) * share
                for k in range(order):
                    store(S, rows[b, k], r, load(S, rows[b, k], r) + w)

    return add_counts


def make_count_pass(order: int) -> Any:
    """The pass below for tensors of one order."""
    terms, add_counts = make_terms(order), make_add_counts(order)

    def count_pass(
        unpack: kinds.Unpack,
        handle: kinds.Integers,
        offsets: kinds.Integers,
        bounds: kinds.Integers,
        value: kinds.Total,
        derivative: kinds.Entrywise,
        loss_p: kinds.Params,
        A: kinds.Matrix,
        values: kinds.Vector,
        S: kinds.Stack,
    ):
        """Add the loss of the events of group g, those from bounds[g] on, to ``values[g]``, and
        their counts to ``S[g]``. A and S have padded rows.
        """
        nowhere = np.empty(0, np.int64)
        for group in range(bounds.size - 1):
            rows = np.empty((CHUNK, order), np.uint32)
            x, m, d = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
            W = np.empty((CHUNK, A.shape[1]))
            for start in range(bounds[group], bounds[group + 1], CHUNK):
                n = min(CHUNK, bounds[group + 1] - start)
                unpack(handle, offsets, nowhere, start, rows[:n], x[:n])
                terms(A, rows[:n], W, m[:n])
                values[group] += value(x[:n], m[:n], loss_p)
                derivative(x[:n], m[:n], loss_p, d[:n])
                for b in range(n):
                    d[b] = -d[b]
                add_counts(W, rows[:n], d[:n], S[group])

    return count_pass


@cache
def compiled_count_pass(order: int) -> Any:
    return kinds.compile_annotated(make_count_pass(order), order)
