"""What a loss is: a handful of formulas about one cell, l(x, m)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from smartcpd.kernels.blocks import entrywise_block, total_block
from smartcpd.kernels.compiling import Block
from smartcpd.piece import Piece

EPS = 1e-9
"""Keeps logarithms and quotients finite where the model is zero."""


class Data(Enum):
    """What the cells may hold: (lowest value, what a message calls them)."""

    REAL = (-np.inf, "finite numbers")
    NONNEGATIVE = (0.0, "numbers that are not negative")
    COUNTS = (0.0, "counts, which are not negative")
    BINARY = (0.0, "0 or 1 in every cell")


class Domain(Enum):
    """Which model values m a loss is defined for."""

    REAL = "real"
    NONNEGATIVE = "nonnegative"


@dataclass(frozen=True)
class Loss(Piece):
    """A loss, described by functions of single numbers.

    Subclasses are frozen dataclasses whose fields, at most two numbers, reach the formulas as
    ``p``. The formulas are written with float literals (``1.0``, not ``1``) and the ``exp`` and
    ``log`` of `smartcpd.kernels.elementary`: compiled, they then run in the precision of the data.
    """

    data: ClassVar[Data]
    domain: ClassVar[Domain]
    default_mirror: ClassVar[str] = "quadratic"
    default_step: ClassVar[str] = "adagrad"
    on_disk: ClassVar[bool] = True

    @property
    def params(self) -> tuple[float, float]:
        """What the formulas receive as p."""
        return self.pair

    @property
    def jensen_mirror(self) -> str | None:
        """The mirror map under which Jensen steps majorise this loss; None where none does."""
        return None

    @staticmethod
    def value(x: Any, m: Any, p: Any) -> Any:
        """l(x, m)."""
        raise NotImplementedError

    @staticmethod
    def derivative(x: Any, m: Any, p: Any) -> Any:
        """The derivative of l with respect to m."""
        raise NotImplementedError

    @staticmethod
    def convex_derivative(x: Any, m: Any, p: Any) -> Any:
        """The derivative of the convex part that Jensen's inequality is applied to."""
        raise NotImplementedError

    @staticmethod
    def mean(m: Any, p: Any) -> Any:
        """The expected value of x, the inverse link, applied to arrays."""
        return m

    def link(self, mean: float) -> float:
        """The model value whose mean is ``mean``: where a start is placed."""
        return mean

    def simulate(self, m: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw data whose model is m."""
        raise NotImplementedError

    def derivative_block(self, dtype: str) -> Block:
        return _loss_block(self.blueprint, "derivative", dtype)

    def convex_block(self, dtype: str) -> Block:
        return _loss_block(self.blueprint, "convex_derivative", dtype)

    def value_block(self, dtype: str) -> Block:
        return _loss_block(self.blueprint, "value", dtype)

    @classmethod
    def formula(cls, name: str, dtype: str) -> Any:
        """The scalar function to compile; literals are cast to ``dtype`` on the way."""
        return getattr(cls, name)


@lru_cache(maxsize=256)
def _loss_block(blueprint: Any, formula: str, dtype: str) -> Block:
    make = total_block if formula == "value" else entrywise_block
    scalar = blueprint.formula(formula, dtype)
    return make(scalar, f"{blueprint.name}.{formula}", dtype, blueprint.on_disk)
