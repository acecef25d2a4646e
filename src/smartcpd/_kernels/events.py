"""Passes over the nonzeros of a sparse tensor.

A nonzero is called an *event*: its position in the storage, its rows in the stacked factors (mode
after mode) and its value. As in `gather`, compiled loops know a storage by a handle of addresses;
`unpack` alone depends on the types the data is stored in.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import Block, exact_subroutine, variant_subroutine
from smartcpd._kernels.gather import load_number
from smartcpd._kernels.lanes import LANES, fill, load, store, total
from smartcpd._kernels.weights import sum_in_order, weighted_terms

CHUNK = 256
"""Events worked on at a time; what they need stays in the cache."""


@cache
def unpack_block(data_dtype: str, dtype: str) -> Block:
    """(handle, offsets, positions, start, rows, x): read some events.

    They are those at ``positions[start:]``, or from ``start`` on if positions is empty; as many as
    ``x`` holds.
    """
    number = load_number(data_dtype)
    item_bytes = np.dtype(data_dtype).itemsize

    def unpack(handle, offsets, positions, start, rows, x):
        n = x.size
        chosen = positions.size > 0
        for b in range(n):
            position = positions[start + b] if chosen else start + b
            x[b] = number(handle[0] + position * item_bytes)
        for k in range(rows.shape[1]):
            address = handle[1 + 2 * k]
            size = handle[2 + 2 * k]
            first = offsets[k]
            for b in range(n):
                position = positions[start + b] if chosen else start + b
                rows[b, k] = first + load_index(address + position * size, size)

    return kinds.compile_block(kinds.Unpack, unpack, f"unpack.{data_dtype}", dtype)


_byte, _short, _word, _long = (load_number(t) for t in ("uint8", "uint16", "uint32", "int64"))


@exact_subroutine
def load_index(address, size):
    """An index stored in 1, 2, 4 or 8 bytes."""
    if size == 1:
        return np.int64(_byte(address))
    if size == 2:
        return np.int64(_short(address))
    if size == 4:
        return np.int64(_word(address))
    return np.int64(_long(address))


def make_model_values(order: int) -> Any:
    """The model at some events, for tensors of one order: the loop over modes is unrolled."""

    @variant_subroutine(order)
    def model_values(A, rows, m):
        for b in range(m.size):
            terms = fill(0.0)
            for r in range(0, A.shape[1], LANES):
                w = load(A, rows[b, 0], r)
                for k in range(1, order):
                    w = w * load(A, rows[b, k], r)
                terms = terms + w
            m[b] = total(terms)

    return model_values


def make_add_gradient(order: int) -> Any:
    """Make the function that adds the gradient of some events, given their derivatives d, to G."""

    @variant_subroutine(order)
    def add_gradient(A, rows, d, G):
        for b in range(d.size):
            for r in range(0, A.shape[1], LANES):
                for n in range(order):
                    w = fill(d[b])
                    for k in range(order):
                        if k != n:
                            w = w * load(A, rows[b, k], r)
                    store(G, rows[b, n], r, load(G, rows[b, n], r) + w)

    return add_gradient


def make_event_pass(order: int) -> Any:
    """The pass below for tensors of one order."""
    model_values, add_gradient = make_model_values(order), make_add_gradient(order)

    def event_pass(
        unpack: kinds.Unpack,
        handle: kinds.Integers,
        offsets: kinds.Integers,
        positions: kinds.Integers,
        bounds: kinds.Integers,
        own_weights: kinds.Vector,
        behind: kinds.Flag,
        value: kinds.Total,
        cell_values: kinds.Entrywise,
        derivative: kinds.Entrywise,
        loss_p: kinds.Params,
        want_gradient: kinds.Flag,
        A: kinds.Matrix,
        values: kinds.Vector,
        G: kinds.Stack,
    ):
        """Add the loss of the events of group g, those from bounds[g] on, to ``values[g]``.

        The gradient goes to ``G[g]``. A and G have padded rows. ``own_weights`` of all events, if
        not empty, multiply what they add; where ``behind`` is set, the terms of a zero are
        subtracted, since the sum over all zeros contains them already.
        """
        weighted = own_weights.size > 0
        for group in range(bounds.size - 1):
            rows = np.empty((CHUNK, order), np.uint32)
            x = np.empty(CHUNK)
            m = np.empty(CHUNK)
            d = np.empty(CHUNK)
            w = np.empty(CHUNK if weighted else 0)
            spare = np.empty(CHUNK)
            for start in range(bounds[group], bounds[group + 1], CHUNK):
                n = min(CHUNK, bounds[group + 1] - start)
                unpack(handle, offsets, positions, start, rows[:n], x[:n])
                model_values(A, rows[:n], m[:n])
                if weighted:
                    for b in range(n):
                        position = positions[start + b] if positions.size > 0 else start + b
                        w[b] = own_weights[position]
                    copied = x[:n].copy()
                    weighted_terms(
                        cell_values, copied, m[:n], loss_p, w[:n], behind, spare[:n], d[:n]
                    )
                    values[group] += sum_in_order(d[:n])
                else:
                    values[group] += value(x[:n], m[:n], loss_p)
                if want_gradient:
                    weighted_terms(
                        derivative, x[:n], m[:n], loss_p, w[:n], behind, spare[:n], d[:n]
                    )
                    add_gradient(A, rows[:n], d[:n], G[group])

    return event_pass


@cache
def compiled_event_pass(order: int) -> Any:
    return kinds.compile_annotated(make_event_pass(order), order)
