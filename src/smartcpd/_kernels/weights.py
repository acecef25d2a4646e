"""Weights of cells, which count more, less or not at all.

A weight of 0 says that nothing is known about a cell. What lies in its place, be it NaN, never
reaches a sum: the cell is read as 1, which every loss accepts, and what comes of it is dropped.
Where all cells count the same, there are no weights: ``w`` is empty.
"""

from __future__ import annotations

from smartcpd._kernels.compiling import subroutine


@subroutine
def hide_missing(x, w):
    """Read cells of weight 0 as 1."""
    for i in range(w.size):
        if w[i] == 0:
            x[i] = 1


@subroutine
def apply_weights(d, w):
    """Multiply by weights; a weight of 0 gives 0, whatever is multiplied."""
    for i in range(w.size):
        d[i] = d[i] * w[i] if w[i] != 0 else 0


@subroutine
def sum_in_order(d):
    total = 0.0
    for i in range(d.size):
        total += d[i]
    return total


@subroutine
def weighted_sum(value, cell_values, x, m, loss_p, w, d):
    """Return the loss of some cells, by the block that is quicker without weights; d is scratch."""
    if w.size == 0:
        return value(x, m, loss_p)
    cell_values(x, m, loss_p, d)
    apply_weights(d, w)
    return sum_in_order(d)


@subroutine
def weighted_terms(terms, x, m, loss_p, w, behind, spare, d):
    """Compute d = w f(x, m), less f(0, m) where there are weights and ``behind`` says that a sum
    over all zeros contains it.

    ``terms`` is the block of f, a loss or its derivative, cell by cell; x is used up.
    """
    hide_missing(x, w)
    terms(x, m, loss_p, d)
    apply_weights(d, w)
    if behind and w.size > 0:
        x[:] = 0
        terms(x, m, loss_p, spare)
        for i in range(d.size):
            d[i] -= spare[i]
