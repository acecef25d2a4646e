"""What a mirror map is: a convex function phi of one number and its derivative, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.piece import Piece
from smartcpd._kernels.blocks import move_block, transform_block
from smartcpd._kernels.compiling import Block

MAX_GROWTH = 100.0
"""The most one step may multiply an entry by.

Where the step leaves the range of the dual, the minimiser lies at infinity; the entry then grows by
this factor instead. Clipping to the other end would send it to zero.
"""
TINY = 1e-30


@dataclass(frozen=True)
class Mirror(Piece):
    """A mirror map phi, entry by entry.

    ``to_dual`` is the derivative of phi and ``to_primal`` its inverse; every update is
    ``to_primal(to_dual(a) - g / Gamma)``. A map may give a quicker closed form as ``move``.
    """

    signed: ClassVar[bool] = False
    """Whether phi is defined for negative entries."""

    max_growth: ClassVar[float] = MAX_GROWTH
    """The most one step may multiply an entry by."""

    @property
    def params(self) -> tuple[float, float]:
        """What the formulas receive as p."""
        return self.pair

    @property
    def floor(self) -> float:
        """The smallest entry allowed; above 0 where a step from 0 would never leave 0."""
        return 1e-9

    @staticmethod
    def potential(a: Any, p: Any) -> Any:
        """phi(a)."""
        raise NotImplementedError

    @staticmethod
    def to_dual(a: Any, p: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def to_primal(z: Any, p: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def move(a: Any, v: Any, p: Any) -> Any:
        """``to_primal(to_dual(a) - v)``."""
        raise NotImplementedError

    def bregman(self, a: Any, b: Any) -> Any:
        """D_phi(a, b), entry by entry, for arrays of one shape."""
        p = self.params
        slope = np.empty(np.shape(b))
        b = np.ascontiguousarray(b, dtype=np.float64)
        self.to_dual_block("float64")(b.reshape(-1), p, slope.reshape(-1))
        return self.potential(a, p) - self.potential(b, p) - slope * (a - b)

    def unit(self, a: float) -> float:
        """a phi''(a): the change in the dual that changes an entry of size a by its own size."""
        h = 1e-4 * a
        p = self.params
        return float((self.to_dual(a + h, p) - self.to_dual(a - h, p)) / 2e-4)

    def move_block(self, dtype: str) -> Block:
        return _mirror_block(self.blueprint, "move", dtype)

    def to_dual_block(self, dtype: str) -> Block:
        return _mirror_block(self.blueprint, "to_dual", dtype)

    def to_primal_block(self, dtype: str) -> Block:
        return _mirror_block(self.blueprint, "to_primal", dtype)


@lru_cache(maxsize=64)
def _mirror_block(cls: Any, formula: str, dtype: str) -> Block:
    make = move_block if formula == "move" else transform_block
    return make(getattr(cls, formula), f"{cls.name}.{formula}", dtype)
