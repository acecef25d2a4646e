"""Copying and adding whole arrays, by loops.

Numba compiles ``A[:] = B`` and ``A += B`` together with the error that unequal shapes would raise,
and everything needed to put that into words: many times as long as the loop itself.
"""

from __future__ import annotations

from smartcpd._kernels.compiling import subroutine


@subroutine
def copy(a, out):
    """Copy the vector a to ``out``."""
    for i in range(a.size):
        out[i] = a[i]


@subroutine
def copy_matrix(A, out):
    for i in range(A.shape[0]):
        for r in range(A.shape[1]):
            out[i, r] = A[i, r]


@subroutine
def add_matrix(A, out):
    for i in range(A.shape[0]):
        for r in range(A.shape[1]):
            out[i, r] += A[i, r]
