"""The formulas of a loss about one cell, and what they are like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from smartcpd.losses.compiled import Compiled
from smartcpd.losses.kinds import Data, Domain


@dataclass(frozen=True)
class Formulas(Compiled):
    """l(x, m) with its derivative and its mean: all that a fit needs to know of a loss."""

    data: ClassVar[Data]
    domain: ClassVar[Domain]
    default_mirror: ClassVar[str] = "quadratic"
    default_step: ClassVar[str] = "adagrad"

    taylor_at_zero: ClassVar[Any] = None
    """A formula p -> (slope, curvature) of l(0, m) at m = 0; None where m may be negative.

    Where most cells have a small m, this is nearly all there is to say about their zeros.
    """

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

    @property
    def divergence(self) -> float | None:
        """The beta of the beta-divergence that this is, up to a constant in x; None for others.

        Its derivative is then u^(beta-2) (u - x), for u = m or nearly so.
        """
        return None

    @property
    def convex(self) -> bool:
        """Whether l(x, m) is known to be convex in m for every x: `proximal` has one answer."""
        return False

    @property
    def jensen_mirror(self) -> str | None:
        """The mirror map under which Jensen steps majorise this loss; None where none does."""
        return None

    @property
    def pseudo_count_slope(self) -> float | None:
        """The c of a loss that is c m less something convex and increasing in log m.

        Expected counts, as for a Poisson likelihood, then give steps that never increase the loss.
        """
        return 1.0 if self.divergence == 1.0 else None

    @property
    def collapses(self) -> bool:
        """Whether a model of 0 costs little wherever something was observed.

        Where most cells are zero, descents that clip may then end there.
        """
        return False

    @property
    def mean_scale(self) -> float | None:
        """The c of a mean that is c m; None where the mean is not in proportion to the model."""
        return 1.0 if type(self).mean is Formulas.mean else None

    @property
    def scales_with_exposure(self) -> bool:
        """Whether twice the model value stands for twice as much, at least where it is small.

        Then it can be multiplied by how much opportunity a cell had.
        """
        return self.mean_scale is not None

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
