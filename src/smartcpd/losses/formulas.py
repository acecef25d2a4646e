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
    """The values that cells may hold; others are refused before a fit."""
    domain: ClassVar[Domain]
    """The model values for which the loss is defined."""
    default_mirror: ClassVar[str] = "quadratic"
    """The mirror map of stochastic steps, unless another is asked for."""
    default_step: ClassVar[str] = "adagrad"
    """The step rule of stochastic steps, unless another is asked for."""

    taylor_at_zero: ClassVar[Any] = None
    """A formula p -> (slope, curvature) of l(0, m) at m = 0; None where m may be negative.

    Where most cells have a small m, this is nearly all there is to say about their zeros.
    """

    @staticmethod
    def value(x: Any, m: Any, p: Any) -> Any:
        """Return l(x, m), the loss of one cell. It is compiled.

        Parameters
        ----------
        x : float
            What was observed in the cell.
        m : float
            The model value there.
        p : pair of floats
            The parameters of the loss, `params`.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import losses
        >>> loss = losses.get("huber(1.0)")
        >>> loss.value(3.0, 1.0, loss.params)
        1.5
        """
        raise NotImplementedError

    @staticmethod
    def derivative(x: Any, m: Any, p: Any) -> Any:
        """Return the derivative of l with respect to m, for one cell. It is compiled.

        Parameters
        ----------
        x : float
            What was observed in the cell.
        m : float
            The model value there.
        p : pair of floats
            The parameters of the loss, `params`.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import losses
        >>> loss = losses.get("huber(1.0)")
        >>> loss.derivative(3.0, 1.0, loss.params)
        -1.0
        """
        raise NotImplementedError

    @staticmethod
    def convex_derivative(x: Any, m: Any, p: Any) -> Any:
        """Return the derivative of the convex part that Jensen's inequality is applied to.

        Only losses that have a ``jensen_mirror`` define it. It is compiled.

        Parameters
        ----------
        x : float
            What was observed in the cell.
        m : float
            The model value there.
        p : pair of floats
            The parameters of the loss, `params`.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import losses
        >>> loss = losses.get("poisson")
        >>> round(loss.convex_derivative(3.0, 2.0, loss.params), 6)
        -1.5
        """
        raise NotImplementedError

    @staticmethod
    def mean(m: Any, p: Any) -> Any:
        """Return the expected values of x where the model is m: the inverse of the link.

        Parameters
        ----------
        m : ndarray
            Model values.
        p : pair of floats
            The parameters of the loss, `params`.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> loss = losses.get("bernoulli-odds")
        >>> loss.mean(np.array([1.0, 3.0]), loss.params)
        array([0.5 , 0.75])
        """
        return m

    def link(self, mean: float) -> float:
        """Return the model value whose mean is ``mean``: where a start is placed.

        Parameters
        ----------
        mean : float
            An expected value of x.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("bernoulli-odds").link(0.75)
        3.0
        """
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
    def events_are_logs(self) -> bool:
        """Whether an event adds -x log(m + EPS) to the loss of an empty cell, and nothing else."""
        return False

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
