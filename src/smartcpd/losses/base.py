"""The base class of losses: a handful of formulas about one cell, l(x, m)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.piece import Piece
from smartcpd._kernels.blocks import entrywise_block, total_block
from smartcpd._kernels.compiling import Block, inline

EPS = 1e-9
"""Keeps logarithms and quotients finite where the model is zero."""


class Data(Enum):
    """The kinds of data that a loss can describe: (lowest value, what a message calls them)."""

    REAL = (-np.inf, "finite numbers")
    NONNEGATIVE = (0.0, "numbers that are not negative")
    COUNTS = (0.0, "counts, which are not negative")
    BINARY = (0.0, "0 or 1 in every cell")


class Domain(Enum):
    """The sets of model values m that a loss can be defined for."""

    REAL = "real"
    NONNEGATIVE = "nonnegative"


@dataclass(frozen=True)
class Loss(Piece):
    """A loss says how bad a model value m is for an observed x, by functions of single numbers.

    Subclasses are frozen dataclasses whose fields, at most two numbers, reach the formulas as
    ``p``. The formulas are written with float literals (``1.0``, not ``1``) and the ``exp`` and
    ``log`` of `smartcpd._kernels.elementary`: compiled, they then run in the precision of the data.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("gaussian")
    >>> loss.value(3.0, 1.0, loss.params)
    2.0
    """

    data: ClassVar[Data]
    domain: ClassVar[Domain]
    default_mirror: ClassVar[str] = "quadratic"
    default_step: ClassVar[str] = "adagrad"
    on_disk: ClassVar[bool] = True

    @property
    def divergence(self) -> float | None:
        """The beta of the beta-divergence that this is, up to a constant in x; None for others.

        Its derivative is then u^(beta-2) (u - x), for u = m or nearly so.
        """
        return None

    @property
    def params(self) -> tuple[float, float]:
        """The two numbers that the formulas receive as p."""
        return self.pair

    @property
    def jensen_mirror(self) -> str | None:
        """The mirror map under which Jensen steps majorise this loss; None where none does."""
        return None

    @property
    def allows_zeros(self) -> bool:
        """Whether an exact zero can be an observation."""
        return True

    @property
    def background(self) -> tuple[float, float, float] | None:
        """(c0, c1, c2) such that l(0, m) = c0 + c1 m + c2 m² / 2 for every m, where they exist.

        The zeros of a sparse tensor then cost nothing.
        """
        return None

    @property
    def convex_background(self) -> tuple[float, float] | None:
        """(b0, b1) such that ``convex_derivative(0, m)`` = b0 + b1 m, where they exist."""
        return None

    taylor_at_zero: ClassVar[Any] = None
    """A formula p -> (slope, curvature) of l(0, m) at m = 0; None where m may be negative.

    Where most cells have a small m, this is nearly all there is to say about their zeros.
    """

    @staticmethod
    def value(x: Any, m: Any, p: Any) -> Any:
        """Return l(x, m)."""
        raise NotImplementedError

    @staticmethod
    def derivative(x: Any, m: Any, p: Any) -> Any:
        """Return the derivative of l with respect to m."""
        raise NotImplementedError

    @staticmethod
    def convex_derivative(x: Any, m: Any, p: Any) -> Any:
        """Return the derivative of the convex part that Jensen's inequality is applied to."""
        raise NotImplementedError

    @staticmethod
    def mean(m: Any, p: Any) -> Any:
        """Return the expected value of x, the inverse link, applied to arrays."""
        return m

    def link(self, mean: float) -> float:
        """Return the model value whose mean is ``mean``, which is where a start is placed."""
        return mean

    def simulate(self, m: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw data whose model is m."""
        raise NotImplementedError

    def derivative_block(self, dtype: str, part: str = "whole") -> Block:
        """Return ``derivative`` compiled for arrays of a type."""
        return _loss_block(self.blueprint, "derivative", part, dtype)

    def convex_block(self, dtype: str, part: str = "whole") -> Block:
        """Return ``convex_derivative`` compiled for arrays of a type."""
        return _loss_block(self.blueprint, "convex_derivative", part, dtype)

    def value_block(self, dtype: str, part: str = "whole") -> Block:
        """The sum over an array of cells of l, or of a part of it.

        "surplus" is l(x, m) - l(0, m), what a nonzero adds to the background; "remainder" is what
        Taylor's quadratic leaves of l(0, m); "weighted" is x l(0, m), with a weight for x.
        """
        return _loss_block(self.blueprint, "value", part, dtype)

    def curvature_block(self, dtype: str) -> Block:
        """The second derivative, cell by cell, where it is positive; 0 elsewhere.

        It is found by a difference of the derivative, so that a user's own loss has one as well,
        and at the observed x: there it is the exact weight of Gauss-Newton's matrix for convex
        losses, knows that the tails of "huber" are straight, and needs no formula for E x. Where
        a loss is not convex, clipping makes it a little larger than expected: steps err on the
        short side.
        """
        return _loss_block(self.blueprint, "derivative", "curvature", dtype)

    def bend_block(self, dtype: str) -> Block:
        """The second derivative, cell by cell, of either sign."""
        return _loss_block(self.blueprint, "derivative", "bend", dtype)

    def values_block(self, dtype: str, part: str = "whole") -> Block:
        """Return a block like `value_block`, cell by cell."""
        return _loss_block(self.blueprint, "values", part, dtype)

    @classmethod
    def formula(cls, name: str, dtype: str) -> Any:
        """The scalar function to compile; literals are cast to ``dtype`` on the way."""
        return getattr(cls, name)


@lru_cache(maxsize=256)
def _loss_block(blueprint: Any, formula: str, part: str, dtype: str) -> Block:
    make = total_block if formula == "value" else entrywise_block
    scalar = blueprint.formula(formula.replace("values", "value"), dtype)
    if part != "whole":
        scalar = _PARTS[part](blueprint, formula, inline(scalar, dtype), dtype)
    return make(scalar, f"{blueprint.name}.{formula}.{part}", dtype, blueprint.on_disk)


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

    return derivative if formula == "derivative" else value


def _weighted(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    zero = np.dtype(dtype).type(0)

    def weighted(x, m, p):
        return x * f(zero, m, p)

    return weighted


def _curvature(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    def curvature(x, m, p):
        h = 1e-5 * abs(m) + 1e-7
        return max((f(x, m + h, p) - f(x, m, p)) / h, 0.0)

    return curvature


def _bend(blueprint: Any, formula: str, f: Any, dtype: str) -> Any:
    # A model that must not be negative is small where it matters; another one has its own unit.
    unit = 1.0 if blueprint.domain is Domain.REAL else 1e-4

    def bend(x, m, p):
        h = 1e-6 * (abs(m) + unit * (1.0 + unit * abs(x)))
        return (f(x, m + h, p) - f(x, m, p)) / h

    return bend


_PARTS = {
    "bend": _bend,
    "surplus": _surplus,
    "remainder": _remainder,
    "weighted": _weighted,
    "curvature": _curvature,
}
