"""Compiled blocks, made from scalar functions.

A piece is described by functions of single numbers, as in a textbook. Each becomes a *block*: a
compiled function over contiguous arrays with one fixed signature a kind, so that the loops accept
any of them, built in or a user's own, at the same speed. ``p`` holds a piece's parameters (beta of
a divergence, the bounds of a box): two numbers, whatever the piece, for one signature to fit all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types

from smartcpd._kernels.compiling import Block, compile_kernel, inline

Scalar = Callable[..., Any]

SUMMED_AT_ONCE = 256
TINY = 1e-30
"""Keeps g / Gamma defined where a Jensen step has Gamma = 0; mirror maps guard what follows."""


@dataclass(frozen=True)
class Precision:
    """Numba's types for one floating-point precision, and the signatures built from them."""

    dtype: Any

    @property
    def real(self) -> Any:
        return from_dtype(np.dtype(self.dtype))

    @property
    def vector(self) -> Any:
        return types.Array(self.real, 1, "C")

    @property
    def matrix(self) -> Any:
        return types.Array(self.real, 2, "C")

    @property
    def params(self) -> Any:
        return types.UniTuple(self.real, 2)

    @property
    def entrywise(self) -> Any:
        """(data, model, p, out): a loss's derivative, cell by cell."""
        return types.void(self.vector, self.vector, self.params, self.vector)

    @property
    def total(self) -> Any:
        """(data, model, p) -> sum: a loss's value over a block of cells."""
        return types.float64(self.vector, self.vector, self.params)

    @property
    def transform(self) -> Any:
        """(a, p, out): to the dual of a mirror map, or back."""
        return types.void(self.vector, self.params, self.vector)

    @property
    def move(self) -> Any:
        """(a, g, gamma, p): a mirror step against the gradient g, in place on a."""
        return types.void(self.vector, self.vector, self.vector, self.params)

    @property
    def scale(self) -> Any:
        """(g, c, d, s, k, p, gamma): a step rule's scaling; s is its state, updated in place."""
        vector = self.vector
        return types.void(vector, vector, vector, vector, self.real, self.params, vector)

    @property
    def project(self) -> Any:
        """(Z, Gamma, to_dual, to_primal, mirror p, p): a constraint, in place on Z."""
        transform = types.FunctionType(self.transform)
        return types.void(self.matrix, self.matrix, transform, transform, self.params, self.params)

    @property
    def gather(self) -> Any:
        """(handle, fibers, mode, first row, out): rows of the sampled fibers, as floats."""
        return types.void(
            types.int64[::1],
            types.Array(types.int64, 2, "C"),
            types.intp,
            types.intp,
            self.matrix,
        )


@cache
def precision(dtype: str) -> Precision:
    return Precision(np.dtype(dtype).type)


def entrywise_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """``out[i] = scalar(x[i], m[i], p)``."""
    kinds = precision(dtype)
    f = inline(scalar, kinds.dtype)

    def block(x, m, p, out):
        for i in range(x.size):
            out[i] = f(x[i], m[i], p)

    return _block(block, kinds.entrywise, name, dtype, on_disk)


def total_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """Return the block that computes ``sum of scalar(x[i], m[i], p)``, in float64.

    A few terms at a time are first added in their own precision: widening each one costs as much as
    a logarithm.
    """
    kinds = precision(dtype)
    f = inline(scalar, kinds.dtype)
    zero = kinds.dtype(0)

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

    return _block(block, kinds.total, name, dtype, on_disk)


def transform_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """``out[i] = scalar(a[i], p)``."""
    kinds = precision(dtype)
    f = inline(scalar, kinds.dtype)

    def block(a, p, out):
        for i in range(a.size):
            out[i] = f(a[i], p)

    return _block(block, kinds.transform, name, dtype, on_disk)


def move_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """``a[i] = scalar(a[i], g[i] / gamma[i], p)``."""
    kinds = precision(dtype)
    f = inline(scalar, kinds.dtype)
    tiny = kinds.dtype(TINY)

    def block(a, g, gamma, p):
        for i in range(a.size):
            a[i] = f(a[i], g[i] / (gamma[i] + tiny), p)

    return _block(block, kinds.move, name, dtype, on_disk)


def scale_block(scalar: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """``gamma[i], s[i] = scalar(g[i], c[i], d[i], s[i], k, p)``."""
    kinds = precision(dtype)
    f = inline(scalar, kinds.dtype)

    def block(g, c, d, s, k, p, gamma):
        for i in range(g.size):
            gamma[i], s[i] = f(g[i], c[i], d[i], s[i], k, p)

    return _block(block, kinds.scale, name, dtype, on_disk)


def project_block(function: Scalar, name: str, dtype: str, on_disk: bool = True) -> Block:
    """A constraint's own loop over a factor (or over some of its rows)."""
    f = inline(function, precision(dtype).dtype)

    def block(Z, Gamma, to_dual, to_primal, mirror_p, p):
        f(Z, Gamma, to_dual, to_primal, mirror_p, p)

    return _block(block, precision(dtype).project, name, dtype, on_disk)


def _block(function: Scalar, signature: Any, name: str, dtype: str, on_disk: bool) -> Block:
    dispatcher = compile_kernel(function, signature, f"{name}.{dtype}", on_disk=on_disk)
    return Block(dispatcher, signature)
