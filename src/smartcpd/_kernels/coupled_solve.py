"""Conjugate gradients on the Hessian of a tensor whose cells count as a product over its modes.

With weights of rows u and Gram matrices of the weighted factors, what a change V of all factors
does to the gradient is cheap to compute: no cell of the tensor is looked at.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import numpy as np
from numba import types

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.copying import copy_matrix

FlagMatrix = Annotated[Any, types.boolean[:, ::1]]
MatrixOfMatrices = Annotated[Any, types.float64[:, :, :, ::1]]


@subroutine
def curve(A_u, u, offsets, blocks, pairs, damping, V, moments, mixed, out):
    """out = the Hessian times V: what a factor's own change does, and what the others' do."""
    order, rank = offsets.size - 1, V.shape[1]
    for n in range(order):
        rows = slice(offsets[n], offsets[n + 1])
        np.dot(V[rows].T, A_u[rows], moments[n])
    for m in range(order):
        rows = slice(offsets[m], offsets[m + 1])
        mixed[:] = 0.0
        for n in range(order):
            if n != m:
                for r in range(rank):
                    for s in range(rank):
                        mixed[r, s] += moments[n, r, s] * pairs[m, n, r, s]
        np.dot(V[rows], blocks[m], out[rows])
        others = np.dot(A_u[rows], mixed)
        for i in range(offsets[m], offsets[m + 1]):
            for r in range(rank):
                own = out[i, r] + damping[m, r] * V[i, r]
                out[i, r] = u[i] * own + others[i - offsets[m], r]


@subroutine
def precondition(inverses, u, offsets, free, R, scaled, Z):
    """Z = R times the inverse of each row's own block, where entries are free."""
    rank = R.shape[1]
    for i in range(len(R)):
        for r in range(rank):
            scaled[i, r] = R[i, r] / u[i]
    for n in range(offsets.size - 1):
        rows = slice(offsets[n], offsets[n + 1])
        np.dot(scaled[rows], inverses[n], Z[rows])
    for i in range(len(R)):
        for r in range(rank):
            if not free[i, r]:
                Z[i, r] = 0.0


@subroutine
def inner(A, B):
    total = 0.0
    for i in range(A.shape[0]):
        for r in range(A.shape[1]):
            total += A[i, r] * B[i, r]
    return total


def coupled_solve(
    A_u: kinds.Matrix,
    u: kinds.Vector,
    offsets: kinds.Integers,
    blocks: kinds.Stack,
    pairs: MatrixOfMatrices,
    inverses: kinds.Stack,
    damping: kinds.Matrix,
    G: kinds.Matrix,
    free: FlagMatrix,
    tolerance: kinds.Real,
    most: kinds.Integer,
    X: kinds.Matrix,
):
    """Leave in X about the solution of (Hessian) X = G among the ``free`` entries, the others 0.

    It ends when the residual, in the norm of the preconditioner, is ``tolerance`` of what it was,
    or after ``most`` steps.
    """
    order, rank = offsets.size - 1, G.shape[1]
    moments, mixed = np.empty((order, rank, rank)), np.empty((rank, rank))
    R, Z, P = np.empty_like(G), np.empty_like(G), np.empty_like(G)
    HP, scaled = np.empty_like(G), np.empty_like(G)
    for i in range(len(G)):
        for r in range(rank):
            X[i, r] = 0.0
            R[i, r] = G[i, r] if free[i, r] else 0.0
    precondition(inverses, u, offsets, free, R, scaled, Z)
    copy_matrix(Z, P)
    size = first = inner(R, Z)
    for _ in range(most):
        curve(A_u, u, offsets, blocks, pairs, damping, P, moments, mixed, HP)
        curvature = inner(P, HP)
        if not curvature > 0.0:
            break
        length = size / curvature
        for i in range(len(G)):
            for r in range(rank):
                X[i, r] += length * P[i, r]
                if free[i, r]:
                    R[i, r] -= length * HP[i, r]
        precondition(inverses, u, offsets, free, R, scaled, Z)
        new = inner(R, Z)
        if not new > tolerance * tolerance * first:
            break
        for i in range(len(G)):
            for r in range(rank):
                P[i, r] = Z[i, r] + new / size * P[i, r]
        size = new


@cache
def compiled_coupled_solve() -> Any:
    return kinds.compile_annotated(coupled_solve)
