"""Algorithm 1: many iterations of fiber-sampled mirror descent in one call.

All factors live in one array A, mode after mode (mode n starts at row ``offsets[n]``), so that one
compiled loop serves tensors of any order. An update splits A_n by rows into tiles: no tile reads
what another writes, so threads share the tiles without changing a bit of the result.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import prange, types

from smartcpd.kernels.blocks import precision
from smartcpd.kernels.compiling import compile_kernel


class Tiling(NamedTuple):
    """How an update is split; it depends on the problem alone, never on the number of threads."""

    rows: int
    worth_threads: bool


def tiling(n_rows: int, n_fibers: int, rank: int) -> Tiling:
    """Tiles that keep a block of cells in the cache, and enough of them to share when it pays."""
    worth_threads = n_rows * n_fibers * rank >= 1_000_000
    cached = max(32, min(128, 32_768 // max(n_fibers, 1)))
    rows = min(cached, max(32, -(-n_rows // 8))) if worth_threads else cached
    return Tiling(rows, worth_threads)


@numba.njit(error_model="numpy")
def khatri_rao_rows(A, offsets, fibers, mode, scale, H, Ht):
    """Rows of the Khatri-Rao product of all factors but one: H is scaled, its transpose is not."""
    n_fibers, rank = H.shape
    first = 1 if mode == 0 else 0
    for f in range(n_fibers):
        row = offsets[first] + fibers[f, first]
        for r in range(rank):
            H[f, r] = A[row, r]
        for k in range(first + 1, fibers.shape[1]):
            if k != mode:
                row = offsets[k] + fibers[f, k]
                for r in range(rank):
                    H[f, r] *= A[row, r]
        for r in range(rank):
            Ht[r, f] = H[f, r]
            H[f, r] *= scale


class Reading(NamedTuple):
    """Where the data lies: what a storage tells compiled code."""

    gather: Any
    handle: Any
    shape: Any
    offsets: Any


class Rule(NamedTuple):
    """The blocks of one way to update a factor: a step rule, a mirror map and a constraint."""

    scale: Any
    move: Any
    to_dual: Any
    to_primal: Any
    project: Any


class Choices(NamedTuple):
    """The loss, and for every mode which rule it uses and with which parameters."""

    derivative: Any
    convex_derivative: Any
    uses_convex_part: Any
    loss_p: Any
    slots: Any
    step_p: Any
    mirror_p: Any
    project_p: Any
    columnwise: Any
    tile_rows: Any


class Workspace(NamedTuple):
    """Arrays for one iteration: rows of the Khatri-Rao product, and one row for each of A_n's."""

    H: Any
    Ht: Any
    G: Any
    C: Any
    D: Any
    Gamma: Any


@numba.njit(error_model="numpy")
def pair(parameters, mode):
    return (parameters[mode, 0], parameters[mode, 1])


@numba.njit(error_model="numpy")
def project_rows(choices, rule, mode, Z, Gamma):
    """Bring rows of a factor back into the constraint of their mode."""
    mirror_p, p = pair(choices.mirror_p, mode), pair(choices.project_p, mode)
    rule.project(Z, Gamma, rule.to_dual, rule.to_primal, mirror_p, p)


@numba.njit(error_model="numpy")
def update_rows(reading, choices, rule, work, mode, fibers, i0, i1, buffers, A_rows, S_rows, k):
    """Gradient and mirror step for rows i0 to i1 of one factor, at its k-th update."""
    n_fibers = fibers.shape[0]
    cells = (i1 - i0) * n_fibers
    x, m, d = buffers[0, :cells], buffers[1, :cells], buffers[2, :cells]
    D_matrix = d.reshape(i1 - i0, n_fibers)
    a, s = A_rows.reshape(-1), S_rows.reshape(-1)
    g, c = work.G[i0:i1].reshape(-1), work.C[i0:i1].reshape(-1)
    dual, gamma = work.D[i0:i1].reshape(-1), work.Gamma[i0:i1].reshape(-1)
    loss_p, mirror_p = pair(choices.loss_p, 0), pair(choices.mirror_p, mode)

    reading.gather(reading.handle, fibers, mode, i0, x.reshape(i1 - i0, n_fibers))
    np.dot(A_rows, work.Ht, m.reshape(i1 - i0, n_fibers))
    choices.derivative(x, m, loss_p, d)
    np.dot(D_matrix, work.H, work.G[i0:i1])
    if choices.uses_convex_part:
        choices.convex_derivative(x, m, loss_p, d)
        np.dot(D_matrix, work.H, work.C[i0:i1])
        rule.to_dual(a, mirror_p, dual)

    rule.scale(g, c, dual, s, k, pair(choices.step_p, mode), gamma)
    rule.move(a, g, gamma, mirror_p)
    if not choices.columnwise[mode]:
        project_rows(choices, rule, mode, A_rows, work.Gamma[i0:i1])


def update_factor(reading, choices, rule, work, mode, fibers, scratch, A_n, S_n, k):
    """One update of a factor, tile by tile; compiled with and without threads."""
    n_rows = A_n.shape[0]
    tile_rows = choices.tile_rows[mode]
    for tile in prange((n_rows + tile_rows - 1) // tile_rows):
        i0 = tile * tile_rows
        i1 = min(i0 + tile_rows, n_rows)
        buffers = scratch[numba.get_thread_id()]
        update_rows(
            reading, choices, rule, work, mode, fibers, i0, i1, buffers, A_n[i0:i1], S_n[i0:i1], k
        )
    if choices.columnwise[mode]:
        project_rows(choices, rule, mode, A_n, work.Gamma[:n_rows])


def make_sweep(update):
    """Algorithm 1 around one of the two compiled forms of ``update_factor``."""

    def sweep(reading, choices, rules, modes, fibers, inner_iterations, scratch, A, S, updates):
        """Run an iteration for each row of ``modes`` and ``fibers``; A, S and updates change."""
        n_fibers, rank = fibers.shape[1], A.shape[1]
        rows = (reading.shape.max(), rank)
        work = Workspace(
            np.empty((n_fibers, rank), A.dtype),
            np.empty((rank, n_fibers), A.dtype),
            np.empty(rows, A.dtype),
            np.empty(rows, A.dtype),
            np.empty(rows, A.dtype),
            np.empty(rows, A.dtype),
        )
        for t in range(modes.size):
            n = modes[t]
            rule = rules[choices.slots[n]]
            start, stop = reading.offsets[n], reading.offsets[n + 1]
            scale = A.dtype.type(1.0 / (n_fibers * (stop - start)))
            khatri_rao_rows(A, reading.offsets, fibers[t], n, scale, work.H, work.Ht)
            A_n, S_n = A[start:stop], S[start:stop]
            for _ in range(inner_iterations):
                update(reading, choices, rule, work, n, fibers[t], scratch, A_n, S_n, updates[n])
                updates[n] += 1

    return sweep


@cache
def compiled_sweep(dtype: str, n_rules: int, parallel: bool) -> Any:
    """The loop above in machine code, for one precision and number of distinct rules."""
    kinds = precision(dtype)

    def function(signature: Any) -> Any:
        return types.FunctionType(signature)

    integers = types.int64[::1]
    reading = types.NamedTuple([function(kinds.gather), integers, integers, integers], Reading)
    choices = types.NamedTuple(
        [
            function(kinds.entrywise),
            function(kinds.entrywise),
            types.boolean,
            kinds.matrix,
            integers,
            kinds.matrix,
            kinds.matrix,
            kinds.matrix,
            types.Array(types.boolean, 1, "C"),
            integers,
        ],
        Choices,
    )
    rule = types.NamedTuple(
        [
            function(kinds.scale),
            function(kinds.move),
            function(kinds.transform),
            function(kinds.transform),
            function(kinds.project),
        ],
        Rule,
    )
    signature = types.void(
        reading,
        choices,
        types.UniTuple(rule, n_rules),
        integers,
        types.Array(types.int64, 3, "C"),
        types.intp,
        types.Array(kinds.real, 3, "C"),
        kinds.matrix,
        kinds.matrix,
        kinds.vector,
    )
    update = numba.njit(update_factor, error_model="numpy", nogil=True, parallel=parallel)
    name = f"sweep.{dtype}.{n_rules}.{'parallel' if parallel else 'serial'}"
    return compile_kernel(make_sweep(update), signature, name)
