"""Sums for every row of a factor, added up over single cells."""

from __future__ import annotations

from functools import cache
from typing import Any

from smartcpd._kernels import kinds


def add_cells(
    rows: kinds.Integers,
    values: kinds.Vector,
    slopes: kinds.Vector,
    bends: kinds.Vector,
    H: kinds.Matrix,
    F: kinds.Vector,
    G: kinds.Matrix,
    B: kinds.Stack,
):
    """For cell c of row i = rows[c], with h = H[c], add its value to F[i], slope h to G[i] and
    bend h h' to B[i].

    Cells are added in their order, so that the sums are the same on every machine.
    """
    rank = H.shape[1]
    for c in range(rows.size):
        i = rows[c]
        F[i] += values[c]
        for r in range(rank):
            g = H[c, r]
            G[i, r] += slopes[c] * g
            g *= bends[c]
            for s in range(rank):
                B[i, r, s] += g * H[c, s]


@cache
def compiled_add_cells() -> Any:
    return kinds.compile_annotated(add_cells)
