"""Products with the Gauss-Newton matrix J' W J, over the nonzeros of a sparse tensor.

The method is that of `curvature`, for events instead of fibers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import variant_subroutine
from smartcpd._kernels.events import CHUNK, make_add_gradient, make_model_values
from smartcpd._kernels.lanes import LANES, fill, load, total
from smartcpd._kernels.weights import apply_weights, hide_missing


def make_event_curvature_pass(order: int) -> Any:
    """The pass below for tensors of one order: the loops over modes are unrolled."""
    model_values, add_gradient = make_model_values(order), make_add_gradient(order)

    @variant_subroutine(order)
    def tangents(A, V, rows, d):
        """Compute by the product rule how much the model changes along V."""
        for b in range(d.size):
            terms = fill(0.0)
            for r in range(0, A.shape[1], LANES):
                w = load(A, rows[b, 0], r)
                t = load(V, rows[b, 0], r)
                for k in range(1, order):
                    a = load(A, rows[b, k], r)
                    t = t * a + w * load(V, rows[b, k], r)
                    w = w * a
                terms = terms + t
            d[b] = total(terms)

    def event_curvature_pass(
        unpack: kinds.Unpack,
        handle: kinds.Integers,
        offsets: kinds.Integers,
        bounds: kinds.Integers,
        own_weights: kinds.Vector,
        curvature: kinds.Entrywise,
        loss_p: kinds.Params,
        behind: kinds.Real,
        A: kinds.Matrix,
        V: kinds.Matrix,
        G: kinds.Stack,
    ):
        """Add J' W J V over the events of group g, those from bounds[g] on, to ``G[g]``.

        ``own_weights`` of the events, if not empty, multiply every curvature. Then ``behind`` is
        subtracted, which is the part that the sum over all zeros contains already. A, V and G have
        padded rows.
        """
        for group in range(bounds.size - 1):
            rows = np.empty((CHUNK, order), np.uint32)
            x = np.empty(CHUNK)
            m = np.empty(CHUNK)
            d = np.empty(CHUNK)
            w = np.empty(CHUNK)
            everything = np.empty(0, np.int64)
            for start in range(bounds[group], bounds[group + 1], CHUNK):
                n = min(CHUNK, bounds[group + 1] - start)
                unpack(handle, offsets, everything, start, rows[:n], x[:n])
                model_values(A, rows[:n], m[:n])
                tangents(A, V, rows[:n], d[:n])
                own = own_weights[start : start + n]
                hide_missing(x[:n], own)
                curvature(x[:n], m[:n], loss_p, w[:n])
                apply_weights(w[:n], own)
                for b in range(n):
                    d[b] *= w[b] - behind
                add_gradient(A, rows[:n], d[:n], G[group])

    return event_curvature_pass


@cache
def compiled_event_curvature_pass(order: int) -> Any:
    return kinds.compile_annotated(make_event_curvature_pass(order), order)
