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
    """Whether machine code of the formulas may be kept on disk for other processes."""

    @property
    def blueprint(self) -> Any:
        """The class whose formulas these are.

        A subclass that only knows more of its data shares the machine code of the loss that it
        comes from.
        """
        own: Any = type(self)
        return _blueprint(own)

    def derivative_block(self, dtype: str, part: str = "whole") -> Block:
        """Return the derivative of l by m compiled for whole arrays, cell by cell.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.
        part : {"whole", "surplus", "remainder", "weighted"}
            The part of the loss, as for `value_block`.

        Returns
        -------
        Block
            A function of (x, m, p, out) that fills ``out``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, out = losses.get("gaussian"), np.empty(2)
        >>> block = loss.derivative_block("float64")
        >>> block(np.array([3.0, 1.0]), np.array([1.0, 1.0]), loss.params, out)
        >>> out
        array([-2.,  0.])
        """
        return _loss_block(self.blueprint, self.variant("derivative"), part, dtype)

    def convex_block(self, dtype: str, part: str = "whole") -> Block:
        """Return the derivative of the convex part compiled for whole arrays, for Jensen steps.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.
        part : {"whole", "surplus", "remainder", "weighted"}
            The part of the loss, as for `value_block`.

        Returns
        -------
        Block
            A function of (x, m, p, out) that fills ``out``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, out = losses.get("poisson"), np.empty(2)
        >>> block = loss.convex_block("float64")
        >>> block(np.array([3.0, 1.0]), np.array([1.0, 2.0]), loss.params, out)
        >>> out.round(6)
        array([-3. , -0.5])
        """
        return _loss_block(self.blueprint, self.variant("convex_derivative"), part, dtype)

    def derivatives_block(self, dtype: str) -> Block:
        """Return one block for both derivatives, so that what they have in common is computed once.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.

        Returns
        -------
        Block
            A function of (x, m, p, out), ``out`` twice as long as x: first the derivatives of the
            loss, then those of its convex part.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, out = losses.get("poisson"), np.empty(4)
        >>> block = loss.derivatives_block("float64")
        >>> block(np.array([3.0, 1.0]), np.array([1.0, 2.0]), loss.params, out)
        >>> out.round(6)
        array([-2. ,  0.5, -3. , -0.5])
        """
        names = self.variant("derivative"), self.variant("convex_derivative")
        return _both_derivatives(self.blueprint, *names, dtype)

    def value_block(self, dtype: str, part: str = "whole") -> Block:
        """Return the sum of l over an array of cells, or of a part of it, compiled.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.
        part : {"whole", "surplus", "remainder", "weighted"}
            "whole" is l(x, m). "surplus" is l(x, m) - l(0, m), what a nonzero adds to the
            background; "remainder" is what Taylor's quadratic leaves of l(0, m); "weighted" is
            x l(0, m), with a weight for x.

        Returns
        -------
        Block
            A function of (x, m, p) that returns the sum.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, x, m = losses.get("gaussian"), np.array([3.0, 0.0]), np.array([1.0, 1.0])
        >>> loss.value_block("float64")(x, m, loss.params)
        2.5
        >>> loss.value_block("float64", "surplus")(x, m, loss.params)
        1.5
        """
        return _loss_block(self.blueprint, "value", part, dtype)

    def curvature_block(self, dtype: str) -> Block:
        """Return the second derivative where it is positive, 0 elsewhere, for whole arrays.

        At the observed x it is the exact weight of Gauss-Newton's matrix for convex losses, knows
        that the tails of "huber" are straight, and needs no formula for E x. Where a loss is not
        convex, clipping makes it a little larger than expected: steps err on the short side.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.

        Returns
        -------
        Block
            A function of (x, m, p, out) that fills ``out``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, out = losses.get("gamma"), np.empty(2)
        >>> block = loss.curvature_block("float64")
        >>> block(np.array([0.2, 2.0]), np.array([1.0, 1.0]), loss.params, out)
        >>> out.round(3)
        array([0., 3.])
        """
        return _loss_block(self.blueprint, self.variant("derivative"), "curvature", dtype)

    def bend_block(self, dtype: str) -> Block:
        """Return the second derivative, of either sign, compiled for whole arrays.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.

        Returns
        -------
        Block
            A function of (x, m, p, out) that fills ``out``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, out = losses.get("gamma"), np.empty(2)
        >>> block = loss.bend_block("float64")
        >>> block(np.array([0.2, 2.0]), np.array([1.0, 1.0]), loss.params, out)
        >>> out.round(3)
        array([-0.6,  3. ])
        """
        return _loss_block(self.blueprint, self.variant("derivative"), "bend", dtype)

    def values_block(self, dtype: str, part: str = "whole") -> Block:
        """Return l compiled for whole arrays, cell by cell where `value_block` adds up.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the arrays.
        part : {"whole", "surplus", "remainder", "weighted"}
            The part of the loss, as for `value_block`.

        Returns
        -------
        Block
            A function of (x, m, p, out) that fills ``out``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss, out = losses.get("gaussian"), np.empty(2)
        >>> block = loss.values_block("float64")
        >>> block(np.array([3.0, 0.0]), np.array([1.0, 1.0]), loss.params, out)
        >>> out
        array([2. , 0.5])
        """
        return _loss_block(self.blueprint, "values", part, dtype)

    def values_at(self, x: Any, m: Any) -> np.ndarray:
        """Return the losses l(x, m) of cells.

        Parameters
        ----------
        x, m : array
            What was observed in the cells, and the model values there.

        Returns
        -------
        ndarray
            In the shape that x and m have together.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("gaussian").values_at([3.0, 0.0], 1.0)
        array([2. , 0.5])
        """
        return self._at(self.values_block("float64"), x, m)

    def slopes_at(self, x: Any, m: Any) -> np.ndarray:
        """Return the derivatives of the losses of cells by m.

        Parameters
        ----------
        x, m : array
            What was observed in the cells, and the model values there.

        Returns
        -------
        ndarray
            In the shape that x and m have together.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("gaussian").slopes_at([3.0, 0.0], 1.0)
        array([-2.,  1.])
        """
        return self._at(self.derivative_block("float64"), x, m)

    def bends_at(self, x: Any, m: Any) -> np.ndarray:
        """Return the second derivatives of the losses of cells by m, of either sign.

        Parameters
        ----------
        x, m : array
            What was observed in the cells, and the model values there.

        Returns
        -------
        ndarray
            In the shape that x and m have together.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("gamma").bends_at([0.2, 2.0], 1.0).round(3)
        array([-0.6,  3. ])
        """
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
        """Return the function of single numbers that is compiled for a formula.

        Parameters
        ----------
        name : str
            The name of the formula: "value", "derivative" and so on.
        dtype : {"float64", "float32"}
            The precision that it is compiled for; literals are cast to it on the way.

        Returns
        -------
        callable (x, m, p)

        Examples
        --------
        >>> from smartcpd import losses
        >>> loss = losses.get("gaussian")
        >>> loss.formula("value", "float64")(3.0, 1.0, loss.params)
        2.0
        """
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

    return value if formula.startswith("value") else derivative


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
