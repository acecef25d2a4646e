"""The stability of the components of a model, which is kept beside the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Stability:
    """How surely each component of a model was found again.

    Attributes
    ----------
    values : tuple of float
        Between 0 and 1, one a component, in the order of the model's columns.
    found : tuple of int
        In how many starts each was found.
    n_starts : int
        How many came to their end, and are counted.
    n_stopped : int
        How many were stopped early, and are not.
    """

    values: tuple[float, ...]
    found: tuple[int, ...]
    n_starts: int
    n_stopped: int = 0

    def ordered(self, order: Sequence[int]) -> Stability:
        """Return the stability of a model whose components are in another order."""
        return Stability(
            tuple(self.values[r] for r in order),
            tuple(self.found[r] for r in order),
            self.n_starts,
            self.n_stopped,
        )

    def words(self, component: int) -> str:
        """Return words such as "found in 4 of 5 starts, stability 0.78"."""
        return (
            f"found in {self.found[component]} of {self.n_starts} starts, "
            f"stability {self.values[component]:.2f}"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Stability:
        """Read what `to_dict` gave; raise KeyError, TypeError or ValueError if it is something
        else.
        """
        return cls(
            tuple(float(v) for v in given["values"]),
            tuple(int(v) for v in given["found"]),
            int(given["n_starts"]),
            int(given["n_stopped"]),
        )
