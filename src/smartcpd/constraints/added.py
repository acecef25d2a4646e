"""Penalties that are added up: quadratic ones, and one of any other kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd.constraints.base import Constraint
from smartcpd.constraints.ridge import Ridge
from smartcpd.constraints.signs import EitherSign
from smartcpd.constraints.smoothness import Smoothness
from smartcpd.constraints.sparsity import Sparsity
from smartcpd.errors import InvalidParameterError
from smartcpd.mirrors import Mirror

MAX_STEPS, SMALL = 20_000, 1e-13
STEEPEST = 4.0
"""The largest curvature of the squared differences between neighbours."""


@dataclass(frozen=True)
class Added(Constraint):
    """A sum of quadratic penalties (ridge, smoothness) and at most one other penalty or constraint.

    Written with a plus: ``"ridge(0.1) + sparsity(0.01)"`` is an elastic net,
    ``"smoothness(0.1) + nonnegative"`` a smooth column without negative entries.

    Parameters
    ----------
    parts : tuple of Constraint
        What is added up, two or more; sums among them are taken apart.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> net = constraints.get("ridge(1) + sparsity(1)")
    >>> net.apply([[0.5], [3.0]])
    array([[0.],
           [1.]])
    >>> net == constraints.Added((constraints.Ridge(1), constraints.Sparsity(1)))
    True
    """

    parts: tuple[Constraint, ...] = ()

    needs_quadratic = True
    is_sum = True

    def __post_init__(self) -> None:
        flat = [p for part in self.parts for p in getattr(part, "parts", (part,))]
        others = [part for part in flat if not part.is_quadratic]
        if len(others) > 1 or len(flat) < 2:
            raise InvalidParameterError(
                f"'{' + '.join(map(str, flat))}' is no sum of quadratic penalties (ridge, "
                "smoothness) and at most one other penalty or constraint."
            )
        if any(not hasattr(part, "project") or part.is_known for part in flat):
            raise InvalidParameterError(
                "Bounds of single entries cannot be added to penalties. Use one of them."
            )
        object.__setattr__(self, "parts", tuple(flat))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The sum as text, as `smartcpd.constraints.get` reads it."""
        return str(self)

    @property
    def other(self) -> Constraint | None:
        """The part that is not quadratic, with the sign that the whole sum has."""
        found = next((part for part in self.parts if not part.is_quadratic), None)
        if isinstance(found, EitherSign) and found.signed and not self.signed:
            return replace(found, nonnegative=True)
        return found

    @property
    def signed(self) -> bool:
        return all(part.signed for part in self.parts)

    @property
    def columnwise(self) -> bool:  # type: ignore[override]
        """Whether the entries of a column are coupled."""
        return any(part.columnwise for part in self.parts)

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether columns have a size they cannot exceed."""
        return any(part.bounded for part in self.parts)

    @property
    def can_shrink(self) -> bool:
        return all(part.can_shrink for part in self.parts)

    @property
    def fades(self) -> bool:
        return self.can_shrink and any(part.fades for part in self.parts)

    def within(self, *, nonnegative: bool) -> Constraint:
        return Added(tuple(part.within(nonnegative=nonnegative) for part in self.parts))

    def penalty(self, A: np.ndarray) -> float:
        return sum(part.penalty(A) for part in self.parts)

    @property
    def smooth_within(self) -> tuple[float, float] | None:
        ends = [part.smooth_within for part in (*self._quadratic, self.other) if part is not None]
        if any(pair is None for pair in ends):
            return None
        low, high = zip(*(pair for pair in ends if pair is not None), strict=True)
        return max(low), min(high)

    def penalty_slope(self, A: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.sum([part.penalty_slope(A) for part in self.parts], axis=0)
        return found

    @property
    def _quadratic(self) -> list[Constraint]:
        return [part for part in self.parts if part.is_quadratic]

    def settle(self, average: np.ndarray, last: np.ndarray) -> np.ndarray:
        return average if self.other is None else self.other.settle(average, last)

    def apply(self, Z: Any, Gamma: Any = None, mirror: Mirror | None = None) -> np.ndarray:
        """Return the minimiser of the sum of Gamma (a - Z)² / 2 and all penalties.

        A ridge is another point and other weights; what is left of a sum is a piece of its own or,
        for smoothness with another piece, found by proximal steps.

        Parameters
        ----------
        Z : array_like (I x R)
            The factor to project.
        Gamma : array_like (I x R), optional
            The weight of each entry; ones by default.
        mirror : ignored
            Sums of penalties know the quadratic geometry alone.

        Returns
        -------
        ndarray (I x R)

        Examples
        --------
        >>> from smartcpd import constraints
        >>> rule = constraints.get("smoothness(1) + nonnegative")
        >>> rule.apply([[-1.0], [0.0], [4.0]]).round(2)
        array([[0. ],
               [0.8],
               [2.4]])
        """
        z = np.array(Z, dtype=np.float64, order="C")
        gamma = np.ones_like(z) if Gamma is None else np.array(Gamma, np.float64, order="C")
        ridge, smooth = self._weight(Ridge), self._weight(Smoothness)
        z, gamma = z * (gamma / (gamma + ridge)), gamma + ridge
        other = self.other
        if isinstance(other, Sparsity) and not self.signed:
            # Of entries that are not negative, the sum of sizes is linear.
            z, other = z - other.weight / gamma, None
        if other is None or other.bounds in ((0.0, np.inf), (-np.inf, np.inf)):
            plain = Smoothness(smooth, nonnegative=not self.signed)
            return plain.apply(z, gamma)
        if smooth == 0.0:
            return other.apply(z, gamma)
        return self._proximal(other, z, gamma, smooth)

    def stepped(
        self, A: np.ndarray, G: np.ndarray, Gamma: np.ndarray, mirror: Mirror
    ) -> np.ndarray:
        return self.apply(A - G / Gamma, Gamma)

    def _weight(self, kind: type[Ridge | Smoothness]) -> float:
        return sum(float(part.weight) for part in self.parts if isinstance(part, kind))

    def _proximal(
        self, other: Constraint, z: np.ndarray, gamma: np.ndarray, smooth: float
    ) -> np.ndarray:
        """Accelerated proximal steps, begun anew where their momentum leads too far."""
        dominant = gamma + STEEPEST * smooth
        rough = Smoothness(smooth, nonnegative=not self.signed)
        here = before = other.apply(rough.apply(z, gamma), dominant)

        def value(A: np.ndarray) -> float:
            squares = float(np.sum(gamma * (A - z) ** 2))
            return 0.5 * squares + rough.penalty(A) + other.penalty(A)

        lowest, momentum = value(here), 1.0
        size = float(np.abs(z).max()) + np.finfo(float).tiny
        for _ in range(MAX_STEPS):
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = here + (momentum - 1.0) / following * (here - before)
            slope = gamma * (ahead - z) + rough.penalty_slope(ahead)
            reached = other.apply(ahead - slope / dominant, dominant)
            cost = value(reached)
            if cost > lowest:
                if momentum == 1.0:
                    break
                momentum, before = 1.0, here
                continue
            change = float(np.abs(reached - here).max())
            before, here, lowest, momentum = here, reached, cost, following
            if change <= SMALL * size:
                break
        return here

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


def split_sum(text: str) -> Sequence[str]:
    """Return the parts of a text at the plus signs outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]
