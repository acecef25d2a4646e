"""Quasi-Newton steps for the square roots of a nonnegative model's entries, many in one call.

The loss of counts bends nearly the same way everywhere when it is seen as a function of the roots
u of the entries, a = u². Scaled by the sums of the other modes' columns, its Hessian is near 4,
which is where limited-memory BFGS begins; less where an entry adds to odds that are large already,
and a longer step changes little. Models of events whose odds are large, where EM creeps,
are finished by about a hundred of these steps. An entry of 0 stays 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine, variant_subroutine
from smartcpd._kernels.copying import copy
from smartcpd._kernels.hot_counts import REFRESH, add_hot, saturated
from smartcpd._kernels.lanes import lines
from smartcpd._kernels.mixture_counts import PAIRED, count_pairs, make_count_events

BENDS = 4.0
"""The Hessian that a run begins with."""
FLATTEST = 1e-2
"""The least that an entry's Hessian is taken for, as a share of that."""
MOST_TRIALS = 8
ENOUGH = 1e-4
"""The share of the promised gain that a step must bring."""
LAST = 5
"""Number of steps whose gains are added up to tell whether anything is left to gain."""
CURVED = 1e-10


@subroutine
def inner(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@subroutine
def write_others(sums, mode, slope, others):
    """Write the products of the sums of all other modes' columns, times a slope, to ``others``."""
    for r in range(others.size):
        product = slope
        for k in range(len(sums)):
            if k != mode:
                product *= sums[k, r]
        others[r] = product


@subroutine
def direction(g, S, Y, turned, memory, bends, d):
    """Write the quasi-Newton direction for the gradient g to d, given a guess of the Hessian's
    diagonal. ``turned`` holds the inner products of the steps S and the changes Y.
    """
    n = int(memory[0])
    most = len(S)
    shares = np.empty(most, g.dtype)
    for i in range(g.size):
        d[i] = -g[i]
    for j in range(n - 1, max(n - most, 0) - 1, -1):
        s, y = S[j % most], Y[j % most]
        share = g.dtype.type(inner(s, d) / turned[j % most])
        shares[j % most] = share
        for i in range(g.size):
            d[i] -= share * y[i]
    scale = g.dtype.type(1.0)
    if n > 0:
        y = Y[(n - 1) % most]
        total = 0.0
        for i in range(g.size):
            total += y[i] * y[i] / bends[i]
        scale = g.dtype.type(turned[(n - 1) % most] / total)
    for i in range(g.size):
        d[i] *= scale / bends[i]
    for j in range(max(n - most, 0), n):
        s, y = S[j % most], Y[j % most]
        share = shares[j % most] - g.dtype.type(inner(y, d) / turned[j % most])
        for i in range(g.size):
            d[i] += share * s[i]


@subroutine
def remember(v, g, new_v, new_g, S, Y, turned, memory):
    """Keep a step and the change of the gradient that it made, with their inner product, if the
    loss was convex along it.
    """
    place = int(memory[0]) % len(S)
    s, y = S[place], Y[place]
    for i in range(v.size):
        s[i] = new_v[i] - v[i]
        y[i] = new_g[i] - g[i]
    turned[place] = inner(s, y)
    if turned[place] > CURVED * np.sqrt(inner(s, s) * inner(y, y)):
        memory[0] += 1.0


def make_descend(variant: Any, count: Any) -> Any:
    """The steps below, with one of the ways to count of `mixture_counts`."""

    @variant_subroutine(variant)
    def gradient(events, background, offsets, rank, cells, hot, scales, v, A, S, g):
        """Write the gradient by the scaled roots v to g, and the factors to A; return the loss."""
        order, slope = offsets.size - 1, background[3]
        real = A.dtype.type
        one, nothing = real(1.0), real(0.0)
        sums = np.zeros((order, rank))
        for k in range(order):
            for i in range(offsets[k], offsets[k + 1]):
                for r in range(rank):
                    u = v[i * rank + r] / scales[r]
                    A[i, r] = u * u
                    S[i, r] = nothing
                    sums[k, r] += A[i, r]
        whole = 0.0
        for r in range(rank):
            product = 1.0
            for k in range(order):
                product *= sums[k, r]
            whole += product
        loss = slope * whole + count(events, one, A, S)
        loss += add_hot(background, offsets, rank, cells, hot, one, A, S)
        others = np.empty(rank, A.dtype)
        for k in range(order):
            write_others(sums, k, slope, others)
            for i in range(offsets[k], offsets[k + 1]):
                for r in range(rank):
                    at = i * rank + r
                    pull = A[i, r] * others[r] - S[i, r]
                    g[at] = (pull + pull) / v[at] if v[at] != nothing else nothing
        return loss

    @variant_subroutine(variant)
    def write_bends(background, rank, cells, hot, offsets, A, S, bends):
        """Write what each entry's Hessian is about to ``bends``: what it would be if no cell were
        hot, less what hot cells lack.
        """
        order = offsets.size - 1
        sums = np.zeros((order, rank))
        for k in range(order):
            for i in range(offsets[k], offsets[k + 1]):
                for r in range(rank):
                    S[i, r] = 0.0
                    sums[k, r] += A[i, r]
        saturated(background, cells, max(int(hot[0]), 0), A, S)
        others = np.empty(rank, A.dtype)
        for k in range(order):
            write_others(sums, k, background[3], others)
            for i in range(offsets[k], offsets[k + 1]):
                for r in range(rank):
                    whole = A[i, r] * others[r]
                    rest = 1.0 - S[i, r] / whole if whole > 0.0 else 1.0
                    bends[i * rank + r] = BENDS * max(rest, FLATTEST)

    @variant_subroutine(variant)
    def descend(
        events,
        background,
        most_hot,
        offsets,
        rank,
        width,
        n_steps,
        least,
        scales,
        v,
        steps,
        turns,
        memory,
    ):
        """Improve scaled roots v in place, by some steps or until a few of them gain no more than
        ``least``; return the loss, the sum over all cells.

        Products of rows have the ``width`` that fills lines of the cache.

        ``steps`` and ``turns``, the changes of the gradient that they made, are remembered;
        ``memory`` holds the number of steps that are remembered and, afterwards, how many steps
        were made and whether nothing is left to gain.
        """
        n_rows = offsets[offsets.size - 1]
        A, S = lines(n_rows, width, v), lines(n_rows, width, v)
        for i in range(n_rows):
            for r in range(width):
                A[i, r] = S[i, r] = 0.0
        cells, hot = np.empty((most_hot, offsets.size - 1), np.uint32), np.full(1, -1.0)
        g, new_g, new_v, d = v.copy(), v.copy(), v.copy(), v.copy()
        loss = gradient(events, background, offsets, rank, cells, hot, scales, v, A, S, g)
        bends = v.copy()
        for i in range(v.size):
            bends[i] = BENDS
        if most_hot > 0:
            write_bends(background, rank, cells, hot, offsets, A, S, bends)
        gains, turned = np.full(LAST, np.inf), np.zeros(len(steps))
        memory[1], memory[2] = 0.0, 0.0
        for step in range(n_steps):
            if most_hot > 0 and step % REFRESH == REFRESH - 1:
                hot[0] = -1.0
                loss = gradient(events, background, offsets, rank, cells, hot, scales, v, A, S, g)
                write_bends(background, rank, cells, hot, offsets, A, S, bends)
            direction(g, steps, turns, turned, memory, bends, d)
            slope = inner(g, d)
            if not slope < 0.0:
                memory[0] = 0.0
                direction(g, steps, turns, turned, memory, bends, d)
                slope = inner(g, d)
            length, taken, trial = 1.0, False, loss
            for _ in range(MOST_TRIALS):
                far = v.dtype.type(length)
                for i in range(v.size):
                    new_v[i] = v[i] + far * d[i]
                trial = gradient(
                    events, background, offsets, rank, cells, hot, scales, new_v, A, S, new_g
                )
                if trial <= loss + ENOUGH * length * slope:
                    taken = True
                    break
                bent = trial - loss - length * slope
                shorter = -0.5 * slope * length / bent if bent > 0.0 else 0.5
                length *= min(max(shorter, 0.1), 0.5)
            memory[1] += 1.0
            if not taken:
                if memory[0] == 0.0 or np.isnan(trial):
                    memory[2] = 1.0
                    break
                memory[0] = 0.0
                continue
            remember(v, g, new_v, new_g, steps, turns, turned, memory)
            gains[step % LAST] = loss - trial
            copy(new_v, v)
            copy(new_g, g)
            loss = trial
            if gains.sum() <= least:
                memory[2] = 1.0
                break
        return loss

    return descend


def make_root_steps(order: int) -> Any:
    """The steps below for tensors of one order."""
    descend = make_descend(order, make_count_events(order))

    def root_steps(
        events: kinds.EventArrays,
        of_zeros: kinds.ZeroParts,
        loss_p: kinds.Params,
        zeros: kinds.Doubles,
        look_up: kinds.LookUp,
        most_hot: kinds.Integer,
        offsets: kinds.Integers,
        rank: kinds.Integer,
        width: kinds.Integer,
        n_steps: kinds.Integer,
        least: kinds.Double,
        scales: kinds.Vector,
        v: kinds.Vector,
        S: kinds.Matrix,
        Y: kinds.Matrix,
        memory: kinds.Doubles,
    ) -> kinds.Double:
        """Improve scaled roots by steps over events of any loss and weight; for ``zeros`` see
        `mixture_passes`.
        """
        value, derivative = of_zeros
        background = value, derivative, loss_p, zeros[0], zeros[2], look_up
        given = (*events, loss_p)
        return descend(
            given,
            background,
            most_hot,
            offsets,
            rank,
            width,
            n_steps,
            least,
            scales,
            v,
            S,
            Y,
            memory,
        )

    return root_steps


@cache
def compiled_root_steps(order: int) -> Any:
    return kinds.compile_annotated(make_root_steps(order), order)


descend_paired = make_descend(PAIRED, count_pairs)


def paired_steps(
    events: kinds.PairArrays,
    of_zeros: kinds.ZeroParts,
    loss_p: kinds.Params,
    zeros: kinds.Doubles,
    look_up: kinds.LookUp,
    most_hot: kinds.Integer,
    offsets: kinds.Integers,
    rank: kinds.Integer,
    width: kinds.Integer,
    n_steps: kinds.Integer,
    least: kinds.Double,
    scales: kinds.Vector,
    v: kinds.Vector,
    S: kinds.Matrix,
    Y: kinds.Matrix,
    memory: kinds.Doubles,
) -> kinds.Double:
    """Improve scaled roots by steps over events that are sorted into pairs."""
    n_inner = len(events[1])
    value, derivative = of_zeros
    background = value, derivative, loss_p, zeros[0], zeros[2], look_up
    given = (*events, lines(n_inner, width, v), lines(n_inner, width, v))
    return descend_paired(
        given,
        background,
        most_hot,
        offsets,
        rank,
        width,
        n_steps,
        least,
        scales,
        v,
        S,
        Y,
        memory,
    )


@cache
def compiled_paired_steps() -> Any:
    return kinds.compile_annotated(paired_steps)
