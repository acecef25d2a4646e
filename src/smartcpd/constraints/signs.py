"""Constraints of the quadratic map, for which the loss decides whether entries may be negative."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from smartcpd.constraints.base import Constraint
from smartcpd.errors import InvalidParameterError
from smartcpd.mirrors import Mirror


@dataclass(frozen=True)
class EitherSign(Constraint):
    """A constraint with at most one parameter of its own, and a choice of sign.

    ``nonnegative=None`` leaves the sign to the loss: see ``within``.
    """

    nonnegative: bool | None = field(default=None, kw_only=True)

    needs_quadratic = True

    def __post_init__(self) -> None:
        if not (self.nonnegative is None or isinstance(self.nonnegative, bool)):
            raise InvalidParameterError(
                f"{self.name}(nonnegative) needs True, False or None (the loss decides); "
                f"got {self.nonnegative!r}."
            )

    @property
    def signed(self) -> bool:
        return self.nonnegative is not True

    def within(self, *, nonnegative: bool) -> EitherSign:
        return self if self.nonnegative is not None else replace(self, nonnegative=nonnegative)

    def params(self, mirror: Mirror) -> tuple[float, float]:
        # The parameter of its own, 0 without one, and whether entries are nonnegative.
        _, own, *_ = (*self.fields, 0.0)
        return float(own), float(not self.signed)

    def __str__(self) -> str:
        """Return the text that the registry reads: numbers by position, flags by name where set."""
        shown = {f: getattr(self, f.name) for f in fields(self)}
        numbers = [f"{v:g}" for v in shown.values() if not isinstance(v, bool | None)]
        flags = [
            f"{f.name}={v}" for f, v in shown.items() if isinstance(v, bool) and v != f.default
        ]
        inside = ", ".join(numbers + flags)
        return f"{self.name}({inside})" if inside else self.name


@dataclass(frozen=True)
class Ball(EitherSign):
    """A bound on the size of every column."""

    radius: float = 1.0

    bounded = True
    columnwise = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.radius < np.inf:
            raise InvalidParameterError(
                f"{self.name}(radius) needs a finite radius above 0; got radius={self.radius!r}."
            )

    @property
    def can_shrink(self) -> bool:
        return True


@dataclass(frozen=True)
class Price(EitherSign):
    """A penalty that is a weight times a measure of the factor."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.weight < np.inf:
            raise InvalidParameterError(
                f"{self.name}(weight) needs a finite weight of 0 or more; "
                f"got weight={self.weight!r}."
            )

    @property
    def can_shrink(self) -> bool:
        return True

    @property
    def fades(self) -> bool:
        return self.weight > 0
