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
        """The bounds of single entries, if the constraint is nothing else and the same for all."""
        return None

    @property
    def smooth_within(self) -> tuple[float, float] | None:
        """The bounds of single entries within which nothing but a smooth penalty counts.

        None where there is more to it.
        """
        return ((-np.inf if self.signed else 0.0), np.inf) if self.is_quadratic else self.bounds

    def penalty_slope(self, A: np.ndarray) -> np.ndarray:
        """Return the derivative of h at A, where it is smooth."""
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
        """Whether it has a price, and that goes to 0 with the size of columns, which may shrink."""
        return False

    def within(self, *, nonnegative: bool) -> Constraint:
        """Return this constraint for a loss whose model must (or need not) be nonnegative."""
        return self

    def params(self, mirror: Mirror) -> tuple[float, float]:
        """Return the two numbers that ``project`` receives as p."""
        return self.pair

    def penalty(self, A: np.ndarray) -> float:
        """Return h(A), which is 0 for a set."""
        return 0.0

    def settle(self, average: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return what an average of allowed factors becomes; ``last`` is the last of these factors.

        Sets that are not convex, and zeros that only some of the factors have, do not survive
        averaging by themselves.
        """
        return average

    @staticmethod
    def project(Z: Any, Gamma: Any, to_dual: Any, to_primal: Any, mirror_p: Any, p: Any) -> None:
        """Complete a step in Z, in place. Compiled; may call ``to_dual(vector, mirror_p, out)``."""
        raise NotImplementedError

    def project_block(self, dtype: str) -> Block:
        """Return ``project`` compiled for factors of a type."""
        return formula_block(project_block, self.blueprint, "project", dtype)

    def step_block(self, mirror: Mirror, dtype: str) -> Block:
        """Return the block that makes the step before ``project``."""
        return mirror.shift_block(dtype) if self.in_dual else mirror.move_block(dtype)

    def stepped(
        self, A: np.ndarray, G: np.ndarray, Gamma: np.ndarray, mirror: Mirror
    ) -> np.ndarray:
        """Return the factor after a mirror step from A against G, inside the constraint."""
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
