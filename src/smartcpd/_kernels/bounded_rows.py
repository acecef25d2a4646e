"""Many small quadratics, each minimised exactly within bounds by an active-set method.

Every row has its own: q(d) = g'd + d'Bd / 2 for low <= d <= high, where d = 0 is allowed. Entries
at a bound are held there; the others go to the minimum, or as far towards it as the first bound
lets them, which then holds one more. At a minimum among the free ones, the entry that pulls away
hardest from its bound is let go. Every step lowers q, so that no set of free entries comes twice.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import exact_subroutine

FREE, LOW, HIGH = 0, -1, 1
PULL = 1e-13
"""A pull smaller than this share of the largest slope is rounding."""


@exact_subroutine
def _solved(B, free, n_free, b, L):
    """Solve B s = b among the free entries by Cholesky's method, in place of b; False if B is not
    positive definite there."""
    for i in range(n_free):
        for j in range(i + 1):
            total = B[free[i], free[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = total / L[j, j]
            else:
                if not total > 0.0:
                    return False
                L[i, i] = np.sqrt(total)
    for i in range(n_free):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(n_free - 1, -1, -1):
        for k in range(i + 1, n_free):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]
    return True


@exact_subroutine
def _slopes(g, B, d, q):
    for r in range(g.size):
        q[r] = g[r]
        for s in range(g.size):
            q[r] += B[r, s] * d[s]


@exact_subroutine
def _advance(d, free, n_free, s, low, high, state):
    """Go along s until the first bound; True if there was none on the way."""
    share, blocked = 1.0, -1
    for i in range(n_free):
        r = free[i]
        end = d[r] + s[i]
        if end < low[r]:
            reach = (low[r] - d[r]) / s[i]
        elif end > high[r]:
            reach = (high[r] - d[r]) / s[i]
        else:
            continue
        if reach < share:
            share, blocked = reach, i
    for i in range(n_free):
        r = free[i]
        d[r] = min(max(d[r] + share * s[i], low[r]), high[r])
    if blocked < 0:
        return True
    r = free[blocked]
    state[r] = LOW if s[blocked] < 0.0 else HIGH
    d[r] = low[r] if s[blocked] < 0.0 else high[r]
    return False


@exact_subroutine
def _released(q, state, least):
    """Let the entry go that pulls away hardest from its bound; True if there is one."""
    hardest, chosen = least, -1
    for r in range(q.size):
        pull = -q[r] if state[r] == LOW else q[r]
        if state[r] != FREE and pull > hardest:
            hardest, chosen = pull, r
    if chosen >= 0:
        state[chosen] = FREE
    return chosen >= 0


def bounded_rows(
    G: kinds.Matrix,
    B: kinds.Stack,
    low: kinds.Matrix,
    high: kinds.Matrix,
    D: kinds.Matrix,
    promised: kinds.Vector,
):
    """Leave the minimisers in D and by how much they lower q in ``promised``; the latter is NaN
    where B is not positive definite."""
    n_rows, rank = G.shape
    free, state = np.empty(rank, np.int64), np.empty(rank, np.int64)
    q, s, L = np.empty(rank), np.empty(rank), np.empty((rank, rank))
    for j in range(n_rows):
        g, d = G[j], D[j]
        steepest = 0.0
        for r in range(rank):
            d[r] = 0.0
            steepest = max(steepest, abs(g[r]))
            state[r] = FREE
            if low[j, r] >= 0.0 and g[r] >= 0.0:
                state[r] = LOW
            elif high[j, r] <= 0.0 and g[r] <= 0.0:
                state[r] = HIGH
        sound = True
        for _ in range(10 * rank + 10):
            _slopes(g, B[j], d, q)
            n_free = 0
            for r in range(rank):
                if state[r] == FREE:
                    free[n_free] = r
                    s[n_free] = -q[r]
                    n_free += 1
            sound = _solved(B[j], free, n_free, s, L)
            if not sound:
                break
            if not _advance(d, free, n_free, s, low[j], high[j], state):
                continue
            _slopes(g, B[j], d, q)
            if not _released(q, state, PULL * steepest):
                break
        _slopes(g, B[j], d, q)
        gain = 0.0
        for r in range(rank):
            gain -= 0.5 * d[r] * (q[r] + g[r])
        promised[j] = gain if sound else np.nan


@cache
def compiled_bounded_rows() -> Any:
    return kinds.compile_annotated(bounded_rows)
