"""Finding the few cells of a nonnegative model whose values are large.

A cell with value above t has a term above t / R. Where the columns are sorted, the cells whose
r-th term is that large are found without looking at most others: every loop ends at the first index
that is too small. An index is also passed over if no cell beyond it can reach t with all its terms.
The cost follows the number of such cells, whatever the size of the tensor.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import exact_subroutine
from smartcpd._kernels.lanes import LANES, fill, load, store, total


@exact_subroutine
def _extend(terms, level, A, row, tails):
    """Multiply the terms of the indices so far by one more row; return the most they can become."""
    most = fill(0.0)
    for c in range(0, A.shape[1], LANES):
        w = load(terms, level, c) * load(A, row, c)
        store(terms, level + 1, c, w)
        most = most + w * load(tails, level + 1, c)
    return total(most)


def find_hot_cells(
    A: kinds.Matrix,
    rank: kinds.Integer,
    offsets: kinds.Integers,
    ranking: kinds.IntegerMatrix,
    threshold: kinds.Real,
    max_visits: kinds.Integer,
    cells: kinds.Rows,
) -> kinds.Integer:
    """Write the cells with model value above ``threshold`` to ``cells``, and return their number.

    A has padded rows. ``ranking[:, r]`` lists the rows of each mode in falling order of column r. A
    cell is reported for the first of its large terms only, so none comes twice. The answer is -1
    where there is no more room or patience.
    """
    order = offsets.size - 1
    terms = np.ones((order + 1, A.shape[1]))
    tails = np.ones((order + 1, A.shape[1]))
    for k in range(order - 1, -1, -1):
        for r in range(rank):
            tails[k, r] = tails[k + 1, r] * A[offsets[k] + ranking[offsets[k], r], r]
    place = np.zeros(order, np.int64)
    found = 0
    visits = 0
    for r in range(rank):
        level = 0
        place[0] = 0
        while level >= 0:
            row = -1
            if place[level] < offsets[level + 1] - offsets[level]:
                row = offsets[level] + ranking[offsets[level] + place[level], r]
                term = terms[level, r] * A[row, r]
                if term * tails[level + 1, r] * rank <= threshold:
                    row = -1
            if row < 0:
                level -= 1
                if level >= 0:
                    place[level] += 1
                continue
            visits += 1
            if visits > max_visits:
                return -1
            if _extend(terms, level, A, row, tails) <= threshold:
                place[level] += 1
            elif level < order - 1:
                level += 1
                place[level] = 0
            else:
                first = True
                for s in range(r):
                    first = first and terms[order, s] * rank <= threshold
                if first:
                    if found == cells.shape[0]:
                        return -1
                    for k in range(order):
                        cells[found, k] = ranking[offsets[k] + place[k], r]
                    found += 1
                place[level] += 1
    return found


@cache
def compiled_find_hot_cells() -> Any:
    return kinds.compile_annotated(find_hot_cells)
