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
from smartcpd.kernels.compiling import compile_kernel, in_precision


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


def sweep(
    gather,
    handle,
    shape,
    offsets,
    modes,
    fibers,
    inner_iterations,
    tile_rows,
    loss,
    loss_p,
    slots,
    scales,
    step_p,
    moves,
    to_duals,
    to_primals,
    mirror_p,
    projects,
    project_p,
    columnwise,
    uses_convex_part,
    scratch,
    A,
    S,
    updates,
):
    """Run one iteration for each row of ``modes`` and ``fibers``; A, S and updates change.

    One long function with many arguments on purpose: bundling them in tuples, or calling the body
    of the loop, costs a tenth of an iteration in reference counts.

    ``slots[n]`` says which of the step rules, mirror maps and constraints mode n uses.
    """
    n_fibers = fibers.shape[1]
    rank = A.shape[1]
    H = np.empty((n_fibers, rank), A.dtype)
    Ht = np.empty((rank, n_fibers), A.dtype)
    G = np.empty((shape.max(), rank), A.dtype)
    C = np.empty_like(G)
    D = np.empty_like(G)
    Gamma = np.empty_like(G)
    for t in range(modes.size):
        n = modes[t]
        slot = slots[n]
        n_rows = shape[n]
        first = offsets[n]
        step_pair = (step_p[n, 0], step_p[n, 1])
        mirror_pair = (mirror_p[n, 0], mirror_p[n, 1])
        project_pair = (project_p[n, 0], project_p[n, 1])
        scale = A.dtype.type(1.0 / (n_fibers * n_rows))
        khatri_rao_rows(A, offsets, fibers[t], n, scale, H, Ht)
        n_tiles = (n_rows + tile_rows[n] - 1) // tile_rows[n]
        for _ in range(inner_iterations):
            for tile in prange(n_tiles):
                thread = numba.get_thread_id()
                i0 = tile * tile_rows[n]
                i1 = min(i0 + tile_rows[n], n_rows)
                cells = (i1 - i0) * n_fibers
                x = scratch[thread, 0, :cells]
                m = scratch[thread, 1, :cells]
                d = scratch[thread, 2, :cells]
                A_tile = A[first + i0 : first + i1]
                a = A_tile.reshape(-1)
                g = G[i0:i1].reshape(-1)
                gamma = Gamma[i0:i1].reshape(-1)

                gather(handle, fibers[t], n, i0, x.reshape(i1 - i0, n_fibers))
                np.dot(A_tile, Ht, m.reshape(i1 - i0, n_fibers))
                loss[0](x, m, loss_p, d)
                np.dot(d.reshape(i1 - i0, n_fibers), H, G[i0:i1])
                if uses_convex_part:
                    loss[1](x, m, loss_p, d)
                    np.dot(d.reshape(i1 - i0, n_fibers), H, C[i0:i1])
                    to_duals[slot](a, mirror_pair, D[i0:i1].reshape(-1))

                s = S[first + i0 : first + i1].reshape(-1)
                c = C[i0:i1].reshape(-1)
                dual = D[i0:i1].reshape(-1)
                scales[slot](g, c, dual, s, updates[n], step_pair, gamma)
                moves[slot](a, g, gamma, mirror_pair)
                if not columnwise[n]:
                    projects[slot](
                        A_tile,
                        Gamma[i0:i1],
                        to_duals[slot],
                        to_primals[slot],
                        mirror_pair,
                        project_pair,
                    )
            if columnwise[n]:
                projects[slot](
                    A[first : first + n_rows],
                    Gamma[:n_rows],
                    to_duals[slot],
                    to_primals[slot],
                    mirror_pair,
                    project_pair,
                )
            updates[n] += 1


@cache
def compiled_sweep(dtype: str, n_slots: int, parallel: bool) -> Any:
    """The loop above in machine code, for one precision and number of distinct rules."""
    kinds = precision(dtype)

    def slots_of(signature: Any) -> Any:
        return types.UniTuple(types.FunctionType(signature), n_slots)

    integers = types.int64[::1]
    pairs = kinds.matrix
    signature = types.void(
        types.FunctionType(kinds.gather),
        integers,
        integers,
        integers,
        integers,
        types.Array(types.int64, 3, "C"),
        types.intp,
        integers,
        types.UniTuple(types.FunctionType(kinds.entrywise), 2),
        kinds.params,
        integers,
        slots_of(kinds.scale),
        pairs,
        slots_of(kinds.move),
        slots_of(kinds.transform),
        slots_of(kinds.transform),
        pairs,
        slots_of(kinds.project),
        pairs,
        types.Array(types.boolean, 1, "C"),
        types.boolean,
        types.Array(kinds.real, 3, "C"),
        kinds.matrix,
        kinds.matrix,
        kinds.vector,
    )
    name = f"sweep.{dtype}.{n_slots}.{'parallel' if parallel else 'serial'}"
    return compile_kernel(in_precision(sweep, kinds.dtype), signature, name, parallel=parallel)
