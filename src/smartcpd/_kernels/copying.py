"""Copying and adding whole arrays, by loops.

Numba compiles ``A[:] = B`` and ``A += B`` together with the error that unequal shapes would raise,
and everything needed to put that into words: many times as long as the loop itself.
"""

from __future__ import annotations

import numba

from smartcpd._kernels.compiling import FASTMATH


@numba.njit(error_model="numpy", fastmath=FASTMATH)
def copy(a, out):
    """Copy the vector a to ``out``."""
    for i in range(a.size):
        out[i] = a[i]


@numba.njit(error_model="numpy", fastmath=FASTMATH)
def copy_matrix(A, out):
    for i in range(A.shape[0]):
        for r in range(A.shape[1]):
            out[i, r] = A[i, r]


@numba.njit(error_model="numpy", fastmath=FASTMATH)
def add_matrix(A, out):
    for i in range(A.shape[0]):
        for r in range(A.shape[1]):
            out[i, r] += A[i, r]
