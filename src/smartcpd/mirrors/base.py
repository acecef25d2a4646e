"""The base class of mirror maps: a convex function phi of one number, and its derivative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.piece import Piece
from smartcpd._kernels.blocks import formula_block, move_block, shift_block, transform_block
from smartcpd._kernels.compiling import Block

INSIDE = 0.7
"""Share of the way to twice or half an entry that a typical first step goes."""
MAX_GROWTH = 100.0
"""The most one step may multiply an entry by, under maps whose dual has an upper end.

Where the step leaves the range of the dual, the minimiser lies at infinity; the entry then grows by
this factor instead. Clipping to the other end would send it to zero.
"""
TINY = 1e-30


@dataclass(frozen=True)
class Mirror(Piece):
    """A mirror map phi decides in which geometry every entry of a factor moves.

    ``to_dual`` is the derivative of phi and ``to_primal`` its inverse; every update is
    ``to_primal(to_dual(a) - g / Gamma)``. A map may give a quicker closed form as ``move``. These
    static methods are compiled: they take and return one number, and ``p`` is `params`.

    Examples
    --------
    >>> from smartcpd import mirrors
    >>> mirrors.get("power(3)").params
    (3.0, inf)
    """

    dual_ends: ClassVar[bool] = True
    """Whether the range of the dual has an end that a step can reach."""

    signed: ClassVar[bool] = False
    """Whether phi is defined for negative entries."""

    @property
    def max_growth(self) -> float:
        """The most one step may multiply an entry by."""
        return MAX_GROWTH

    @property
    def params(self) -> tuple[float, float]:
        """The two numbers that the compiled formulas receive as p."""
        return self.limited(math.inf)

    def limited(self, ratio: float) -> tuple[float, float]:
        """Return `params` with the most by which a step may change an entry towards a dual's end.

        A step that is short for one entry can reach the end from another.

        Parameters
        ----------
        ratio : float
            What an entry may be multiplied or divided by at most; infinity sets no limit.

        Returns
        -------
        tuple of two floats

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> phi = mirrors.get("burg")
        >>> phi.move(2.0, -10.0, phi.params), phi.move(2.0, -10.0, phi.limited(3.0))
        (200.0, 6.0)
        """
        return self.pair[0], ratio

    @property
    def floor(self) -> float:
        """The smallest entry allowed; it is above 0 where a step from 0 would never leave 0."""
        return 1e-9

    @staticmethod
    def potential(a: Any, p: Any) -> Any:
        """Return phi(a), the convex function that the map is known by.

        Parameters
        ----------
        a : float or ndarray
            Entries for which phi is defined.
        p : pair of floats
            The parameters of the map, `params`.

        Returns
        -------
        float or ndarray

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> phi = mirrors.get("quadratic")
        >>> phi.potential(3.0, phi.params)
        4.5
        """
        raise NotImplementedError

    @staticmethod
    def to_dual(a: Any, p: Any) -> Any:
        """Return phi'(a), the dual of an entry.

        Parameters
        ----------
        a : float
            An entry for which phi is defined.
        p : pair of floats
            The parameters of the map, `params`.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> phi = mirrors.get("burg")
        >>> phi.to_dual(2.0, phi.params)
        -0.5
        """
        raise NotImplementedError

    @staticmethod
    def to_primal(z: Any, p: Any) -> Any:
        """Return the entry whose dual is z: the inverse of ``to_dual``.

        Parameters
        ----------
        z : float
            A dual; one outside of the range gives an entry at the end of that.
        p : pair of floats
            The parameters of the map, `params`.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> phi = mirrors.get("burg")
        >>> phi.to_primal(-0.5, phi.params)
        2.0
        """
        raise NotImplementedError

    @staticmethod
    def move(a: Any, v: Any, p: Any) -> Any:
        """Return ``to_primal(to_dual(a) - v)``: the entry a after a step v in the dual.

        Parameters
        ----------
        a : float
            The entry.
        v : float
            The step, a gradient over its scaling.
        p : pair of floats
            The parameters of the map, `params`.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> phi = mirrors.get("burg")
        >>> phi.move(2.0, 0.5, phi.params)
        1.0
        """
        raise NotImplementedError

    def bregman(self, a: Any, b: Any) -> Any:
        """Return the Bregman divergence D_phi(a, b), entry by entry.

        Parameters
        ----------
        a, b : ndarray
            Entries for which phi is defined, in arrays of one shape.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import mirrors
        >>> mirrors.get("quadratic").bregman(np.array([3.0]), np.array([1.0]))
        array([2.])
        """
        p = self.params
        slope = np.empty(np.shape(b))
        b = np.ascontiguousarray(b, dtype=np.float64)
        self.to_dual_block("float64")(b.reshape(-1), p, slope.reshape(-1))
        return self.potential(a, p) - self.potential(b, p) - slope * (a - b)

    def unit(self, a: float) -> float:
        """Return a step in the dual that changes an entry a by about its own size.

        Where the dual has an end, it is a share of the step that doubles the entry, or that halves
        it if that is less: phi'(2a) - phi'(a) stays inside a range with an upper end, which for
        -log a is only 1 / a away, and phi'(a) - phi'(a/2) inside one with a lower end, at which
        components die. Elsewhere it is a phi''(a).

        Parameters
        ----------
        a : float
            A typical entry of a factor.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> [round(mirrors.get(name).unit(2.0), 3) for name in ("quadratic", "entropy", "burg")]
        [2.0, 1.0, 0.175]
        """
        if not self.dual_ends:
            h = 1e-4 * a
            return float(
                (self.to_dual(a + h, self.params) - self.to_dual(a - h, self.params)) / 2e-4
            )
        low, middle, high = (self.to_dual(a * ratio, self.params) for ratio in (0.5, 1.0, 2.0))
        return float(INSIDE * min(high - middle, middle - low))

    def half(self, a: float) -> float:
        """Return the step in the dual that halves an entry a; infinity where no step reaches 0.

        Steps reach it under maps of signed entries, where `unit` is as long as the way there.

        Parameters
        ----------
        a : float
            A typical entry of a factor.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import mirrors
        >>> mirrors.get("quadratic").half(2.0), mirrors.get("entropy").half(2.0)
        (1.0, inf)
        """
        if not self.signed:
            return math.inf
        return float(self.to_dual(a, self.params) - self.to_dual(0.5 * a, self.params))

    def move_block(self, dtype: str) -> Block:
        """Return ``move`` compiled for whole arrays of a type.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            A function of (a, g, Gamma, p) that leaves in a its entries after the step g / Gamma.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import mirrors
        >>> phi, a = mirrors.get("burg"), np.array([2.0, 4.0])
        >>> phi.move_block("float64")(a, np.array([0.5, 0.5]), np.ones(2), phi.params)
        >>> a.round(4)
        array([1.    , 1.3333])
        """
        return formula_block(move_block, self.blueprint, self.variant("move"), dtype)

    def shift_block(self, dtype: str) -> Block:
        """Return a block like `move_block` whose results are duals, even outside their range.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            A function of (a, g, Gamma, p) that leaves in a the duals ``to_dual(a) - g / Gamma``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import mirrors
        >>> phi, a = mirrors.get("burg"), np.array([2.0, 4.0])
        >>> phi.shift_block("float64")(a, np.array([0.5, 0.5]), np.ones(2), phi.params)
        >>> a.round(4)
        array([-1.  , -0.75])
        """
        return formula_block(shift_block, self.blueprint, self.variant("to_dual"), dtype)

    def to_dual_block(self, dtype: str) -> Block:
        """Return ``to_dual`` compiled for whole arrays of a type.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            A function of (a, p, out) that fills ``out`` with the duals of a.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import mirrors
        >>> phi, out = mirrors.get("burg"), np.empty(2)
        >>> phi.to_dual_block("float64")(np.array([2.0, 4.0]), phi.params, out)
        >>> out.round(4)
        array([-0.5 , -0.25])
        """
        return formula_block(transform_block, self.blueprint, self.variant("to_dual"), dtype)

    def to_primal_block(self, dtype: str) -> Block:
        """Return ``to_primal`` compiled for whole arrays of a type.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            A function of (z, p, out) that fills ``out`` with the entries whose duals are z.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import mirrors
        >>> phi, out = mirrors.get("burg"), np.empty(2)
        >>> phi.to_primal_block("float64")(np.array([-0.5, -0.25]), phi.params, out)
        >>> out.round(4)
        array([2., 4.])
        """
        return formula_block(transform_block, self.blueprint, self.variant("to_primal"), dtype)
