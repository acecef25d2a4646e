"""The base class of constraints: a set for a factor, or a penalty on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smartcpd import mirrors
from smartcpd._common.piece import Piece
from smartcpd._kernels.blocks import formula_block, project_block
from smartcpd._kernels.compiling import Block
from smartcpd.mirrors import Mirror


@dataclass(frozen=True)
class Constraint(Piece):
    """A constraint is a set, or a convex penalty h, for one factor.

    ``project`` completes a mirror step exactly: given the unconstrained point Z and the scaling
    Gamma it leaves in Z the minimiser over the set of

        sum of Gamma * D_phi(a, Z)  +  h(a).

    The weights Gamma matter wherever entries are coupled: without them the fixed points of a step
    with entry-wise scaling are not the solutions of the constrained problem.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("nonnegative").apply([[-1.0], [3.0]])
    array([[0.],
           [3.]])
    """

    columnwise: ClassVar[bool] = False
    """Whether the entries of a column are coupled; if not, any set of rows can be projected."""
    bounded: ClassVar[bool] = False
    """Whether columns have a size they cannot exceed."""
    cone: ClassVar[bool] = False
    """Whether a positive multiple of an allowed column is allowed, at no cost."""
    in_dual: ClassVar[bool] = False
    """Whether ``project`` receives the duals of Z. A set that bounds every entry has a minimiser
    also where the step leaves the range of the dual, and no Z is left.
    """
    needs_quadratic: ClassVar[bool] = False
    """Whether only the quadratic map has a projection in closed form."""
    is_quadratic: ClassVar[bool] = False
    """Whether it is a price on squares, which can be added to other penalties."""
    is_sum: ClassVar[bool] = False
    """Whether it is a sum of pieces, whose projection is not compiled."""
    is_known: ClassVar[bool] = False
    """Whether every entry has bounds of its own."""

    @property
    def signed(self) -> bool:
        """Whether entries may be negative."""
        return False

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest value of an entry, if that is all there is to the constraint.

        None for other constraints, and for bounds that differ from entry to entry.
        """
        return None

    @property
    def smooth_within(self) -> tuple[float, float] | None:
        """The lowest and the highest value of an entry, if all else is a smooth penalty.

        Such constraints are served by methods for smooth functions under bounds. None for others.
        """
        return ((-np.inf if self.signed else 0.0), np.inf) if self.is_quadratic else self.bounds

    def penalty_slope(self, A: np.ndarray) -> np.ndarray:
        """Return the derivative of h at A, where it is smooth.

        Solvers that follow gradients add it to the gradient of the loss.

        Parameters
        ----------
        A : ndarray (I x R)
            A factor inside the constraint.

        Returns
        -------
        ndarray (I x R)
            Zeros for a set, which has no price.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints
        >>> constraints.get("ridge(0.5)").penalty_slope(np.array([[2.0], [4.0]]))
        array([[1.],
               [2.]])
        """
        return np.zeros_like(A)

    @property
    def penalises(self) -> bool:
        """Whether it costs something to have some allowed entries rather than others."""
        return type(self).penalty is not Constraint.penalty

    @property
    def can_shrink(self) -> bool:
        """Whether every smaller multiple of an allowed column is allowed."""
        return self.cone

    @property
    def fades(self) -> bool:
        """Whether it is a penalty that can be escaped by shrinking columns.

        There is then no minimum unless the columns of the other modes cannot grow in return.
        """
        return False

    def within(self, *, nonnegative: bool) -> Constraint:
        """Return this constraint for a loss whose model must (or need not) be nonnegative.

        Penalties leave the sign of entries to the loss unless they are told; sets are as they are.

        Parameters
        ----------
        nonnegative : bool
            Whether the loss is defined for nonnegative models only.

        Returns
        -------
        Constraint

        Examples
        --------
        >>> from smartcpd import constraints
        >>> print(constraints.get("ridge(0.5)").within(nonnegative=True))
        ridge(0.5, nonnegative=True)
        """
        return self

    def params(self, mirror: Mirror) -> tuple[float, float]:
        """Return the two numbers that ``project`` receives as p.

        Parameters
        ----------
        mirror : Mirror
            The geometry of the steps, whose ``floor`` is the smallest entry that a step can leave.

        Returns
        -------
        tuple of two numbers

        Examples
        --------
        >>> from smartcpd import constraints, mirrors
        >>> constraints.get("box(0, 1)").params(mirrors.get("quadratic"))
        (0, 1)
        >>> constraints.get("box(0, 1)").params(mirrors.get("entropy"))
        (1e-09, 1)
        """
        return self.pair

    def penalty(self, A: np.ndarray) -> float:
        """Return h(A), what a factor costs, which is 0 for a set.

        Parameters
        ----------
        A : ndarray (I x R)
            A factor inside the constraint.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints
        >>> constraints.get("sparsity(0.5)").penalty(np.array([[1.0], [-3.0]]))
        2.0
        """
        return 0.0

    def settle(self, average: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return what an average of allowed factors becomes.

        Sets that are not convex, and zeros that only some of the factors have, do not survive
        averaging by themselves.

        Parameters
        ----------
        average : ndarray (I x R)
            The average of the factors of many iterations.
        last : ndarray (I x R)
            The last of these factors.

        Returns
        -------
        ndarray (I x R)
            An allowed factor.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints
        >>> average, last = np.array([[0.1], [2.0]]), np.array([[0.0], [2.1]])
        >>> constraints.get("sparsity(1)").settle(average, last)
        array([[0.],
               [2.]])
        """
        return average

    @staticmethod
    def project(Z: Any, Gamma: Any, to_dual: Any, to_primal: Any, mirror_p: Any, p: Any) -> None:
        """Complete a step in Z, in place.

        This is what a constraint of your own defines. It is compiled: plain loops over numbers and
        arrays are as fast as they would be in C, and what Numba does not know cannot be used.

        Parameters
        ----------
        Z : ndarray (I x R)
            The factor after the unconstrained step, or its duals where ``in_dual``. Afterwards it
            holds the minimiser inside the constraint.
        Gamma : ndarray (I x R)
            The weight of each entry.
        to_dual, to_primal : callable (vector, mirror_p, out)
            The derivative of the mirror map and its inverse, for the entries of a vector.
        mirror_p : pair of numbers
            The parameters of the mirror map.
        p : pair of numbers
            The parameters of the constraint, as `params` gives them.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints
        >>> Z, Gamma, p = np.array([[-1.0], [3.0]]), np.ones((2, 1)), (0.0, 0.0)
        >>> constraints.get("nonnegative").project(Z, Gamma, None, None, None, p)
        >>> Z
        array([[0.],
               [3.]])
        """
        raise NotImplementedError

    def project_block(self, dtype: str) -> Block:
        """Return ``project`` compiled for factors of a type.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            A function of the parameters of `project`, which compiled loops take as an argument.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints, mirrors
        >>> rule, phi = constraints.get("nonnegative"), mirrors.get("quadratic")
        >>> maps = phi.to_dual_block("float64"), phi.to_primal_block("float64")
        >>> Z = np.array([[-1.0], [3.0]])
        >>> rule.project_block("float64")(Z, np.ones((2, 1)), *maps, phi.params, rule.params(phi))
        >>> Z
        array([[0.],
               [3.]])
        """
        return formula_block(project_block, self.blueprint, "project", dtype)

    def step_block(self, mirror: Mirror, dtype: str) -> Block:
        """Return the block that makes the step before ``project``: of entries, or of their duals.

        Parameters
        ----------
        mirror : Mirror
            The geometry of the steps.
        dtype : {"float64", "float32"}
            The type of the entries.

        Returns
        -------
        Block
            `Mirror.shift_block` where ``in_dual``, else `Mirror.move_block`.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints, mirrors
        >>> phi, a = mirrors.get("quadratic"), np.array([2.0])
        >>> step = constraints.get("nonnegative").step_block(phi, "float64")
        >>> step(a, np.array([0.5]), np.ones(1), phi.params)
        >>> a
        array([1.5])
        """
        return mirror.shift_block(dtype) if self.in_dual else mirror.move_block(dtype)

    def stepped(
        self, A: np.ndarray, G: np.ndarray, Gamma: np.ndarray, mirror: Mirror
    ) -> np.ndarray:
        """Return the factor after a mirror step from A against G, inside the constraint.

        Parameters
        ----------
        A : ndarray (I x R)
            The factor.
        G : ndarray (I x R)
            The gradient.
        Gamma : ndarray (I x R)
            The scaling of each entry: the larger, the shorter its step.
        mirror : Mirror
            The geometry of the step.

        Returns
        -------
        ndarray (I x R)
            A new array.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints, mirrors
        >>> A, G = np.array([[2.0], [0.1]]), np.array([[0.5], [0.5]])
        >>> constraints.get("nonnegative").stepped(A, G, np.ones((2, 1)), mirrors.get("quadratic"))
        array([[1.5],
               [0. ]])
        """
        out = A.copy()
        step = self.step_block(mirror, "float64")
        step(out.reshape(-1), G.reshape(-1), Gamma.reshape(-1), mirror.params)
        return self._completed(out, Gamma, mirror)

    def apply(
        self, Z: np.ndarray, Gamma: np.ndarray | None = None, mirror: Mirror | None = None
    ) -> np.ndarray:
        """Return the projection of Z as a new array.

        Parameters
        ----------
        Z : array_like (I x R)
            The factor to project.
        Gamma : ndarray (I x R), optional
            The weight of each entry; ones by default.
        mirror : Mirror, optional
            The geometry of the projection; quadratic by default.

        Returns
        -------
        ndarray (I x R)

        Examples
        --------
        >>> from smartcpd import constraints
        >>> constraints.get("simplex").apply([[0.5], [1.5]]).round(6)
        array([[0.],
               [1.]])
        """
        phi = mirror or mirrors.get("quadratic")
        out = np.array(Z, dtype=np.float64, order="C")
        weights = np.ones_like(out) if Gamma is None else np.array(Gamma, np.float64, order="C")
        if self.in_dual:
            phi.to_dual_block("float64")(out.reshape(-1), phi.params, out.reshape(-1))
        return self._completed(out, weights, phi)

    def _completed(self, out: np.ndarray, Gamma: np.ndarray, phi: Mirror) -> np.ndarray:
        """Project ``out`` in place and return it."""
        self.project_block("float64")(
            out,
            Gamma,
            phi.to_dual_block("float64"),
            phi.to_primal_block("float64"),
            phi.params,
            self.params(phi),
        )
        return out
