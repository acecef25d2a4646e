"""What the events of a sparse tensor expect of the components of a mixture, in one pass: events of
any loss and weight one by one, or events that are logs and have no weights in pairs.

A way to count is a function ``count(events, scale, A, S)``. It takes ``scale`` times the gradient
of what events add to the loss, times A, from S, and returns what they add.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._kernels.compiling import variant_subroutine
from smartcpd._kernels.copying import copy
from smartcpd._kernels.events import CHUNK
from smartcpd._kernels.expected_counts import make_add_counts, make_terms
from smartcpd._kernels.paired_events import add_paired, add_to_rows, write_products
from smartcpd._kernels.weights import sum_in_order, weighted_terms

PAIRED = "paired"
"""The variant of kernels that count pairs; other variants are named by the order of the tensor."""


@variant_subroutine(PAIRED)
def count_pairs(events, scale, A, S):
    """Count events that add -x log(m + floor), and have no weights."""
    outer, inner, starts, partners, x, floor, T, G = events
    write_products(A, inner, T)
    for j in range(len(G)):
        for r in range(G.shape[1]):
            G[j, r] = 0.0
    loss = add_paired(outer, starts, partners, x, 0, len(outer), floor, A, T, G, S)
    add_to_rows(T, G, inner, S)
    return loss


def make_count_events(order: int) -> Any:
    """The way to count below for tensors of one order."""
    terms, add_counts = make_terms(order), make_add_counts(order)

    @variant_subroutine(order)
    def count_events(events, scale, A, S):
        """Count any events. With weights, the blocks give the whole loss of a cell, and that of a
        zero is taken off where the sum over all cells has it.
        """
        rows, x, w, value, cell_values, derivative, loss_p = events
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
                d[b] = -scale * d[b]
            add_counts(W, here, d[:n], S)
        return loss

    return count_events
