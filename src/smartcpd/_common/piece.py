"""The base class of losses, mirror maps, constraints, step rules and samplers."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Piece:
    """A piece is a named value with a few numbers as fields.

    Compiled code receives the numbers as ``p``, a pair whatever the piece, so that all pieces of a
    kind share one signature and a new value of a parameter never recompiles anything.
    """

    name: ClassVar[str]
    """The name that a registry finds the piece by, such as "poisson"."""

    @property
    def fields(self) -> tuple[Any, ...]:
        """The parameters, in the order of the dataclass."""
        return astuple(self)

    @property
    def pair(self) -> tuple[float, float]:
        """The first two fields as numbers, which is how compiled code sees them."""
        first, second, *_ = (*self.fields, 0.0, 0.0)
        return float(first), float(second)

    @property
    def blueprint(self) -> Any:
        """What compiled code depends on: the class alone, since numbers arrive at run time."""
        return type(self)

    def variant(self, formula: str) -> str:
        """Return the name of the method that is compiled for a formula.

        Some values of a parameter have a shorter one. The choice is made here and not inside the
        formula, since loops around a formula that branches are not vectorised.

        Parameters
        ----------
        formula : str
            The name of the method that holds for all values, such as ``"derivative"``.

        Returns
        -------
        str
            The name of the method to compile in its place; the same where there is no shorter one.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("beta(0.7)").variant("derivative")
        'derivative'
        >>> losses.get("beta(0.5)").variant("derivative")
        '_derivative_at_half'
        """
        return formula

    def __str__(self) -> str:
        known = [v for v in self.fields if v is not None]
        shown = ", ".join(v if isinstance(v, str) else f"{v:g}" for v in known)
        return f"{self.name}({shown})" if shown else self.name
