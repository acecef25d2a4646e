"""Algorithm 1: many iterations of sampled mirror descent in one call.

The gradient of an iteration is a sum of up to three parts:

* sampled fibers, read whole: all there is for dense data, as in the paper;
* sampled events, the nonzeros of sparse data, with what each adds to the loss of a zero;
* a line b0 + b1 m in place of the derivative at the zeros, summed over all cells in closed form.
  Where it is not the exact derivative, the fibers hold what it leaves.

All factors live in one array A, mode after mode (mode n starts at row ``offsets[n]``), so that one
compiled loop serves tensors of any order. An update splits A_n by rows into tiles: no tile reads
what another writes, so threads share the tiles without changing a bit of the result.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import prange

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import exact_subroutine
from smartcpd._kernels.sparse_gradient import (
    add_events,
    add_line,
    by_tile,
    event_terms,
    square_sum,
    summarise,
)
from smartcpd._kernels.weights import apply_weights, hide_missing


class Tiling(NamedTuple):
    """How an update is split; it depends on the problem alone, never on the number of threads."""

    rows: int
    worth_threads: bool


def tiling(n_rows: int, n_fibers: int, rank: int, n_events: int = 0) -> Tiling:
    """Tiles that keep a block of cells in the cache, and enough of them to share when it pays."""
    worth_threads = (n_rows * n_fibers + 4 * n_events) * rank >= 1_000_000
    cached = max(32, min(128, 32_768 // max(n_fibers, 1)))
    rows = min(cached, max(32, -(-n_rows // 8))) if worth_threads else cached
    return Tiling(rows, worth_threads)


@exact_subroutine
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
    gather: kinds.Gather,
    handle: kinds.Integers,
    weigh: kinds.Gather,
    weights_handle: kinds.Integers,
    share: kinds.Double,
    shape: kinds.Integers,
    offsets: kinds.Integers,
    modes: kinds.Integers,
    fibers: kinds.IntegerStack,
    unpack: kinds.Unpack,
    event_handle: kinds.Integers,
    events: kinds.Integers,
    event_starts: kinds.Integers,
    event_weights: kinds.Vector,
    own_weights: kinds.Vector,
    surplus: tuple[kinds.Entrywise, kinds.Entrywise],
    lines: kinds.Matrix,
    lines_limit: kinds.Real,
    line_scale: kinds.Real,
    inner_iterations: kinds.Integer,
    tile_rows: kinds.Integers,
    loss: kinds.Entrywise,
    loss_p: kinds.Params,
    slots: kinds.Integers,
    scales: tuple[kinds.Scale, ...],
    step_p: kinds.Matrix,
    moves: tuple[kinds.Move, ...],
    to_duals: tuple[kinds.Transform, ...],
    to_primals: tuple[kinds.Transform, ...],
    mirror_p: kinds.Matrix,
    projects: tuple[kinds.Project, ...],
    project_p: kinds.Matrix,
    columnwise: kinds.Flags,
    uses_convex_part: kinds.Flag,
    scratch: kinds.Stack,
    A: kinds.Matrix,
    S: kinds.Matrix,
    updates: kinds.Vector,
):
    """Run one iteration for each of ``modes``; A, S and updates change.

    ``fibers[t]`` and ``events[event_starts[t]:event_starts[t + 1]]`` are what iteration t reads,
    each event with weight ``event_weights[t]``. ``lines`` holds (b0, b1) for the derivative and for
    its convex part, and again for when the sum of m² exceeds ``lines_limit``; ``line_scale`` is one
    over the number of cells, or 0 where there is no line.

    One long function with many arguments on purpose: bundling them in tuples, or calling the body
    of the loop, costs a tenth of an iteration in reference counts.

    ``weigh`` reads the weights of the fibers' cells by a handle that is empty where all count the
    same, ``own_weights`` are those of all events, likewise; ``share`` is one over the mean weight.
    With weights, ``surplus`` holds the derivatives themselves.

    ``loss`` gives the derivatives of cells, and behind them, where ``uses_convex_part``, those of
    the convex part. ``slots[n]`` says which of the step rules, mirror maps and constraints mode n
    uses.
    """
    n_fibers = fibers.shape[1]
    n_parts = 2 if uses_convex_part else 1
    rank = A.shape[1]
    H = np.empty((n_fibers, rank), A.dtype)
    Ht = np.empty((rank, n_fibers), A.dtype)
    longest = 0
    for n_rows in shape:
        longest = max(longest, n_rows)
    G = np.empty((longest, rank), A.dtype)
    C = np.empty_like(G)
    D = np.empty_like(G)
    Gamma = np.empty_like(G)
    order = shape.size
    max_events = 0
    for t in range(modes.size):
        max_events = max(max_events, event_starts[t + 1] - event_starts[t])
    rows_e = np.empty((max_events, order), np.uint32)
    x_e = np.empty(max_events, A.dtype)
    H_e = np.empty((max_events, rank), A.dtype)
    owner = np.empty(max_events, np.int64)
    listed = np.empty(max_events, np.int64)
    w_e = np.empty(max_events if own_weights.size > 0 else 0, A.dtype)
    work_e = np.empty((5, max_events), A.dtype)
    sums = np.empty((order, rank), A.dtype)
    grams = np.empty((order, rank, rank), A.dtype)
    use_line = line_scale > 0.0
    weighted = weights_handle.size > 0
    use_gram = lines[0, 1] != 0.0 or lines[1, 1] != 0.0
    if use_line:
        for k in range(order):
            summarise(A[offsets[k] : offsets[k + 1]], use_gram, sums[k], grams[k])
    for t in range(modes.size):
        n = modes[t]
        slot = slots[n]
        n_rows = shape[n]
        first = offsets[n]
        step_pair = (step_p[n, 0], step_p[n, 1])
        mirror_pair = (mirror_p[n, 0], mirror_p[n, 1])
        project_pair = (project_p[n, 0], project_p[n, 1])
        scale = A.dtype.type(share / (max(n_fibers, 1) * n_rows))
        khatri_rao_rows(A, offsets, fibers[t], n, scale, H, Ht)
        n_tiles = (n_rows + tile_rows[n] - 1) // tile_rows[n]
        line = 0
        if use_line and use_gram and square_sum(grams) > lines_limit:
            line = 2
        n_events = event_starts[t + 1] - event_starts[t]
        tile_starts = np.zeros(n_tiles + 1, np.int64)
        if n_events > 0:
            unpack(
                event_handle, offsets, events, event_starts[t], rows_e[:n_events], x_e[:n_events]
            )
            event_terms(A, offsets, rows_e[:n_events], n, H_e[:n_events], owner[:n_events])
            by_tile(owner[:n_events], tile_rows[n], tile_starts, listed[:n_events])
            if own_weights.size > 0:
                for e in range(n_events):
                    w_e[e] = own_weights[events[event_starts[t] + e]]
        for _ in range(inner_iterations):
            for tile in prange(n_tiles):
                thread = numba.get_thread_id()
                i0 = tile * tile_rows[n]
                i1 = min(i0 + tile_rows[n], n_rows)
                cells = (i1 - i0) * n_fibers
                x = scratch[thread, 0, :cells]
                m = scratch[thread, 1, :cells]
                d = scratch[thread, 3:].reshape(-1)[: cells * n_parts]
                A_tile = A[first + i0 : first + i1]
                a = A_tile.reshape(-1)
                g = G[i0:i1].reshape(-1)
                gamma = Gamma[i0:i1].reshape(-1)

                if n_fibers > 0:
                    gather(handle, fibers[t], n, i0, x.reshape(i1 - i0, n_fibers))
                    if weighted:
                        w = scratch[thread, 2, :cells]
                        weigh(weights_handle, fibers[t], n, i0, w.reshape(i1 - i0, n_fibers))
                        hide_missing(x, w)
                    np.dot(A_tile, Ht, m.reshape(i1 - i0, n_fibers))
                    loss(x, m, loss_p, d)
                else:
                    G[i0:i1] = 0.0
                    C[i0:i1] = 0.0
                for part in range(n_parts):
                    G_part = G if part == 0 else C
                    if n_fibers > 0:
                        d_part = d[part * cells : (part + 1) * cells]
                        if use_line:
                            for i in range(cells):
                                d_part[i] -= lines[line + part, 0] + lines[line + part, 1] * m[i]
                        if weighted:
                            apply_weights(d_part, scratch[thread, 2, :cells])
                        np.dot(d_part.reshape(i1 - i0, n_fibers), H, G_part[i0:i1])
                    if use_line:
                        add_line(
                            lines[line + part, 0],
                            lines[line + part, 1],
                            line_scale,
                            sums,
                            grams,
                            n,
                            A_tile,
                            G_part[i0:i1],
                        )
                    if tile_starts[tile + 1] > tile_starts[tile]:
                        add_events(
                            surplus[part],
                            loss_p,
                            event_weights[t],
                            w_e,
                            use_line,
                            listed[tile_starts[tile] : tile_starts[tile + 1]],
                            owner,
                            x_e,
                            H_e,
                            A[first : first + n_rows],
                            work_e,
                            tile_starts[tile],
                            G_part,
                        )
                if uses_convex_part:
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
        if use_line:
            summarise(A[first : first + n_rows], use_gram, sums[n], grams[n])


@cache
def compiled_sweep(dtype: str, n_slots: int, parallel: bool) -> Any:
    """The loop above in machine code, for one precision and number of distinct rules."""
    return kinds.compile_annotated(sweep, dtype=dtype, length=n_slots, parallel=parallel)
