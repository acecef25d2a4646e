"""Compiled blocks, made from scalar functions.

A piece is described by functions of single numbers, as in a textbook. Each becomes a *block*: a
compiled function over contiguous arrays with one fixed signature a kind, so that the loops accept
any of them, built in or a user's own, at the same speed. ``p`` holds a piece's parameters (beta of
a divergence, the bounds of a box).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import Block, inline, inline_formula

Scalar = Callable[..., Any]

SUMMED_AT_ONCE = 256
TINY = 1e-30
"""Keeps g / Gamma defined where a Jensen step has Gamma = 0; mirror maps guard what follows."""


def entrywise_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """``out[i] = scalar(x[i], m[i], p)``."""
    f = inline_formula(scalar, dtype)

    def block(x, m, p, out):
        for i in range(x.size):
            out[i] = f(x[i], m[i], p)

    return kinds.compile_block(kinds.Entrywise, block, name, dtype, on_disk)


def paired_block(
    scalar: Scalar, other: Scalar, name: str, dtype: str, on_disk: bool = True
) -> Block:
    """``out[i] = scalar(x[i], m[i], p)``, and behind them the same with ``other``: out is twice as
    long as x. What the two have in common is computed once.
    """
    f, g = inline_formula(scalar, dtype), inline_formula(other, dtype)

    def block(x, m, p, out):
        n = x.size
        for i in range(n):
            # Read before anything is written: for all the compiler knows, out could be x or m.
            x_i, m_i = x[i], m[i]
            out[i] = f(x_i, m_i, p)
            out[n + i] = g(x_i, m_i, p)

    return kinds.compile_block(kinds.Entrywise, block, name, dtype, on_disk)


def total_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """Return the block that computes ``sum of scalar(x[i], m[i], p)``, in float64.

    A few terms at a time are first added in their own precision: widening each one costs as much as
    a logarithm.
    """
    f = inline_formula(scalar, dtype)
    zero = np.dtype(dtype).type(0)

    def block(x, m, p):
        total = 0.0
        whole = x.size // SUMMED_AT_ONCE * SUMMED_AT_ONCE
        for start in range(0, whole, SUMMED_AT_ONCE):
            part = zero
            for i in range(SUMMED_AT_ONCE):
                part += f(x[start + i], m[start + i], p)
            total += part
        for i in range(whole, x.size):
            total += f(x[i], m[i], p)
        return total

    return kinds.compile_block(kinds.Total, block, name, dtype, on_disk)


def transform_block(scalar: Scalar, name: str, dtype: str) -> Block:
    """``out[i] = scalar(a[i], p)``."""
    f = inline_formula(scalar, dtype)

    def block(a, p, out):
        for i in range(a.size):
            out[i] = f(a[i], p)

    return kinds.compile_block(kinds.Transform, block, name, dtype)


def move_block(scalar: Scalar, name: str, dtype: str) -> Block:
    """``a[i] = scalar(a[i], g[i] / gamma[i], p)``."""
    f = inline_formula(scalar, dtype)
    tiny = np.dtype(dtype).type(TINY)

    def block(a, g, gamma, p):
        for i in range(a.size):
            a[i] = f(a[i], g[i] / (gamma[i] + tiny), p)

    return kinds.compile_block(kinds.Move, block, name, dtype)


def shift_block(scalar: Scalar, name: str, dtype: str) -> Block:
    """``a[i] = scalar(a[i], p) - g[i] / gamma[i]``: a step that stays in the dual."""
    f = inline_formula(scalar, dtype)
    tiny = np.dtype(dtype).type(TINY)

    def block(a, g, gamma, p):
        for i in range(a.size):
            a[i] = f(a[i], p) - g[i] / (gamma[i] + tiny)

    return kinds.compile_block(kinds.Move, block, f"{name}.shift", dtype)


def scale_block(scalar: Scalar, name: str, dtype: str) -> Block:
    """``gamma[i], s[i] = scalar(g[i], c[i], d[i], s[i], k, p)``."""
    f = inline_formula(scalar, dtype)

    def block(g, c, d, s, k, p, gamma):
        for i in range(g.size):
            gamma[i], s[i] = f(g[i], c[i], d[i], s[i], k, p)

    return kinds.compile_block(kinds.Scale, block, name, dtype)


def project_block(function: Scalar, name: str, dtype: str) -> Block:
    """A constraint's own loop over a factor (or over some of its rows)."""
    f = inline(function, dtype)

    def block(Z, Gamma, to_dual, to_primal, mirror_p, p):
        f(Z, Gamma, to_dual, to_primal, mirror_p, p)

    return kinds.compile_block(kinds.Project, block, name, dtype)


@lru_cache(maxsize=256)
def formula_block(make: Callable[..., Block], piece: Any, formula: str, dtype: str) -> Block:
    """Return the block that ``make`` makes of one formula of a class of pieces, made once."""
    return make(getattr(piece, formula), f"{piece.name}.{formula}", dtype)
