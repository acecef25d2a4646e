"""The formulas of a loss as compiled blocks over arrays of cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.piece import Piece
from smartcpd._kernels.blocks import entrywise_block, paired_block, total_block
from smartcpd._kernels.compiling import Block, inline, inline_formula
from smartcpd.losses.kinds import Domain

COMPILED = ("value", "derivative", "convex_derivative", "taylor_at_zero", "domain", "on_disk")
"""All of a loss's class that machine code depends on."""


@dataclass(frozen=True)
class Compiled(Piece):
    """A piece whose formulas of single numbers run over arrays at compiled speed.

    The blocks are what compiled loops take as arguments; ``values_at``, ``slopes_at`` and
    ``bends_at`` are the same for arrays of any shape.
    """

    on_disk: ClassVar[bool] = True

    @property
    def blueprint(self) -> Any:
        """The class whose formulas these are.

        A subclass that only knows more of its data shares the machine code of the loss that it
        comes from.
        """
        own: Any = type(self)
        return _blueprint(own)

    def derivative_block(self, dtype: str, part: str = "whole") -> Block:
        return _loss_block(self.blueprint, self.variant("derivative"), part, dtype)

    def convex_block(self, dtype: str, part: str = "whole") -> Block:
        return _loss_block(self.blueprint, self.variant("convex_derivative"), part, dtype)

    def derivatives_block(self, dtype: str) -> Block:
        """Both derivatives, that of the convex part behind the other."""
        names = self.variant("derivative"), self.variant("convex_derivative")
        return _both_derivatives(self.blueprint, *names, dtype)

    def value_block(self, dtype: str, part: str = "whole") -> Block:
        """The sum over an array of cells of l, or of a part of it.

        "surplus" is l(x, m) - l(0, m), what a nonzero adds to the background; "remainder" is what
        Taylor's quadratic leaves of l(0, m); "weighted" is x l(0, m), with a weight for x.
        """
        return _loss_block(self.blueprint, "value", part, dtype)

    def curvature_block(self, dtype: str) -> Block:
        """The second derivative, cell by cell, where it is positive; 0 elsewhere.

        At the observed x it is the exact weight of Gauss-Newton's matrix for convex losses, knows
        that the tails of "huber" are straight, and needs no formula for E x. Where a loss is not
        convex, clipping makes it a little larger than expected: steps err on the short side.
        """
        return _loss_block(self.blueprint, self.variant("derivative"), "curvature", dtype)

    def bend_block(self, dtype: str) -> Block:
        """The second derivative, cell by cell, of either sign."""
        return _loss_block(self.blueprint, self.variant("derivative"), "bend", dtype)

    def values_block(self, dtype: str, part: str = "whole") -> Block:
        """Return a block like `value_block`, cell by cell."""
        return _loss_block(self.blueprint, "values", part, dtype)

    def values_at(self, x: Any, m: Any) -> np.ndarray:
        """The losses l(x, m) of cells, in the shape that x and m have together."""
        return self._at(self.values_block("float64"), x, m)

    def slopes_at(self, x: Any, m: Any) -> np.ndarray:
        """The derivatives of the losses of cells by m."""
        return self._at(self.derivative_block("float64"), x, m)

    def bends_at(self, x: Any, m: Any) -> np.ndarray:
        """The second derivatives of the losses of cells by m, of either sign."""
        return self._at(self.bend_block("float64"), x, m)

    def _at(self, block: Block, x: Any, m: Any) -> np.ndarray:
        shape = np.broadcast_shapes(np.shape(x), np.shape(m))
        whole = (a if np.shape(a) == shape else np.broadcast_to(a, shape) for a in (x, m))
        # Compiled blocks take no array that is read-only.
        flat = [np.require(a, np.float64, ["C", "W", "E"]).reshape(-1) for a in whole]
        out = np.empty_like(flat[0])
        block(*flat, self.params, out)
        return out.reshape(shape)

    @property
    def params(self) -> tuple[float, float]:
        """The pair of numbers that the formulas receive as p."""
        return self.pair

    @classmethod
    def formula(cls, name: str, dtype: str) -> Any:
        """The scalar function to compile; literals are cast to ``dtype`` on the way."""
        return getattr(cls, name)


@lru_cache(maxsize=256)
def _blueprint(own: Any) -> Any:
    for base in own.__mro__:
        if all(getattr(base, name, None) is getattr(own, name) for name in COMPILED):
            own = base
    return own


@lru_cache(maxsize=256)
def _loss_block(blueprint: Any, formula: str, part: str, dtype: str) -> Block:
    make = total_block if formula == "value" else entrywise_block
    scalar = blueprint.formula(formula.replace("values", "value"), dtype)
    if part != "whole":
        scalar = _PARTS[part](blueprint, formula, inline_formula(scalar, dtype), dtype)
    return make(scalar, f"{blueprint.name}.{formula}.{part}", dtype, _is_kept(blueprint))


@lru_cache(maxsize=256)
def _both_derivatives(blueprint: Any, formula: str, convex: str, dtype: str) -> Block:
    whole, part = (blueprint.formula(name, dtype) for name in (formula, convex))
    name = f"{blueprint.name}.{formula}.both"
    return paired_block(whole, part, name, dtype, _is_kept(blueprint))


def _is_kept(blueprint: Any) -> bool:
    """Whether machine code may be kept on disk, whose key holds the sources of this package."""
    return blueprint.on_disk and blueprint.__module__.startswith("smartcpd.")


def _surplus(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    zero = np.dtype(dtype).type(0)

    def surplus(x, m, p):
        return f(x, m, p) - f(zero, m, p)

    return surplus


def _remainder(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    zero = np.dtype(dtype).type(0)
    taylor = inline(blueprint.taylor_at_zero, dtype)

    def value(x, m, p):
        slope, curvature = taylor(p)
        return f(zero, m, p) - slope * m - 0.5 * curvature * m * m

    def derivative(x, m, p):
        slope, curvature = taylor(p)
        return f(zero, m, p) - slope - curvature * m

    return derivative if formula.startswith("derivative") else value


def _weighted(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    zero = np.dtype(dtype).type(0)

    def weighted(x, m, p):
        return x * f(zero, m, p)

    return weighted


def _bend(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    """Make the second derivative from a difference of the first.

    So a user's own loss has one as well; it is one-sided, since m - h could leave the domain.
    """
    # A model that must not be negative is small where it matters; another one has its own unit.
    unit = 1.0 if blueprint.domain is Domain.REAL else 1e-4

    def bend(x, m, p):
        h = 1e-6 * (abs(m) + unit * (1.0 + unit * abs(x)))
        return (f(x, m + h, p) - f(x, m, p)) / h

    return bend


def _curvature(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    """The second derivative as Gauss-Newton steps take it: not negative, and over a longer step.

    Events where next to nothing is expected would otherwise rule the matrix: with the step of
    `_bend`, descents on sparse counts are slower. Single precision needs a longer step, too.
    """

    def curvature(x, m, p):
        h = 1e-5 * abs(m) + 1e-7
        return max((f(x, m + h, p) - f(x, m, p)) / h, 0.0)

    return curvature


_PARTS = {
    "bend": _bend,
    "surplus": _surplus,
    "remainder": _remainder,
    "weighted": _weighted,
    "curvature": _curvature,
}
