"""Values and gradients over many fibers, added up in float64.

The fibers come in groups that do not depend on the number of threads; each group has its own sums,
and these are added in order. Any number of threads therefore gives the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import prange, types

from smartcpd.kernels.blocks import precision
from smartcpd.kernels.compiling import compile_kernel, in_precision
from smartcpd.kernels.sweep import khatri_rao_rows


def fiber_pass(
    gather,
    handle,
    offsets,
    mode,
    fibers,
    batch,
    value,
    derivative,
    loss_p,
    want_gradient,
    A,
    values,
    G,
):
    """Add the loss of group k's fibers to ``values[k]`` and its gradient to ``G[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    first = offsets[mode]
    n_rows = offsets[mode + 1] - first
    for group in prange(n_groups):
        x = np.empty(batch * n_rows)
        m = np.empty(batch * n_rows)
        d = np.empty(batch * n_rows)
        H_buffer = np.empty(batch * rank)
        Ht_buffer = np.empty(batch * rank)
        partial = np.empty((n_rows, rank))
        A_n = A[first : first + n_rows]
        for start in range(0, group_size, batch):
            stop = min(start + batch, group_size)
            n_fibers = stop - start
            cells = n_fibers * n_rows
            chosen = fibers[group, start:stop]
            H = H_buffer[: n_fibers * rank].reshape(n_fibers, rank)
            Ht = Ht_buffer[: n_fibers * rank].reshape(rank, n_fibers)
            khatri_rao_rows(A, offsets, chosen, mode, 1.0, H, Ht)
            gather(handle, chosen, mode, 0, x[:cells].reshape(n_rows, n_fibers))
            np.dot(A_n, Ht, m[:cells].reshape(n_rows, n_fibers))
            values[group] += value(x[:cells], m[:cells], loss_p)
            if want_gradient:
                derivative(x[:cells], m[:cells], loss_p, d[:cells])
                np.dot(d[:cells].reshape(n_rows, n_fibers), H, partial)
                G[group] += partial


@cache
def compiled_fiber_pass(parallel: bool) -> Any:
    kinds = precision("float64")
    signature = types.void(
        types.FunctionType(kinds.gather),
        types.int64[::1],
        types.int64[::1],
        types.intp,
        types.Array(types.int64, 3, "C"),
        types.intp,
        types.FunctionType(kinds.total),
        types.FunctionType(kinds.entrywise),
        kinds.params,
        types.boolean,
        kinds.matrix,
        kinds.vector,
        types.Array(types.float64, 3, "C"),
    )
    name = f"fiber_pass.{'parallel' if parallel else 'serial'}"
    return compile_kernel(in_precision(fiber_pass, np.float64), signature, name, parallel=parallel)
