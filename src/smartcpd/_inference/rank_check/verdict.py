"""The verdict about a rank as plain values, which go to JSON and back, and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from smartcpd._inference.wording import components_named, counted
from smartcpd.errors import InvalidDataError


class Suits(StrEnum):
    """How a rank suits the data."""

    WELL = "well"
    """Neither fewer nor more components predict cells better that were held out."""
    LOW = "too low"
    HIGH = "too high"
    UNKNOWN = "unknown"
    """Time or data did not suffice to compare it with other ranks."""


@dataclass(frozen=True)
class RankVerdict:
    """What other ranks predict of held-out cells, compared with the rank of a model.

    Attributes
    ----------
    rank : int
        The rank of the model.
    suits : Suits
        The verdict.
    better : int or None
        The rank that shows it: a higher one that predicts better, or the lowest one found that
        predicts as well.
    explained, better_explained : float or None
        The share of the deviance of held-out cells that models of both ranks explain.
    surplus : tuple of int
        Components, counted from 0, that have no counterpart in the model of the lower rank.
    tried : tuple of int
        The other ranks that were compared.
    seconds : float
        How long it took.
    """

    rank: int
    suits: Suits
    better: int | None = None
    explained: float | None = None
    better_explained: float | None = None
    surplus: tuple[int, ...] = ()
    tried: tuple[int, ...] = ()
    seconds: float = 0.0

    @property
    def headline(self) -> str:
        """The verdict in a sentence, for the top of a page; nothing if there is none."""
        if self.suits is Suits.LOW:
            if self.explained is None or self.better_explained is None:
                return f"The rank is too low: {self.brief}."
            return (
                f"The rank is too low: of cells that were held out, {counted(self.better or 0)} "
                f"explain{'s' * (self.better == 1)} {self.better_explained:.1%} of the deviance, "
                f"{self.rank} only {max(self.explained, 0.0):.1%}."
            )
        if self.suits is Suits.HIGH:
            verb = "predicts" if self.better == 1 else "predict"
            return (
                f"The rank is too high: {counted(self.better or 0)} {verb} held-out cells as well "
                f"as {self.rank}."
            )
        if self.suits is Suits.WELL:
            return f"The rank suits the data: {self._others()}."
        if self.explained is not None and self.explained <= 0:
            return (
                "Whether the rank suits the data cannot be told: it is too little to predict cells "
                "that were held out."
            )
        return ""

    @property
    def brief(self) -> str:
        """The verdict in a few words."""
        if self.suits is Suits.LOW:
            return f"{counted(self.better or 0)} predict held-out cells better than {self.rank}"
        if self.suits is Suits.HIGH:
            verb = "predicts" if self.better == 1 else "predict"
            return f"{counted(self.better or 0)} {verb} held-out cells as well as {self.rank}"
        return ""

    def named_surplus(self) -> str:
        """A sentence that names the surplus components."""
        if not self.surplus:
            return ""
        names = components_named([r + 1 for r in self.surplus])
        verb = "has" if len(self.surplus) == 1 else "have"
        return f"{names} {verb} no counterpart among them."

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.suits is Suits.LOW:
            return f"Use more than {self.rank}; `smartcpd select` or rank 'auto' finds how many."
        if self.suits is Suits.HIGH:
            return f"Use {counted(self.better or 0)}; what the others show may be chance."
        return ""

    def _others(self) -> str:
        """Say of lower ranks that they predict worse, and of higher ones that they do no better."""
        lower = sorted(rank for rank in self.tried if rank < self.rank)
        higher = sorted(rank for rank in self.tried if rank > self.rank)
        if not lower:
            return f"{_predict(higher)} no better"
        more = f", {_either(higher)} no better" if higher else ""
        return f"{_predict(lower)} worse{more}"

    def to_dict(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and text, which JSON can hold."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> RankVerdict:
        """Read what `to_dict` gave; names that this version does not know are ignored."""
        values = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        try:
            values["suits"] = Suits(given["suits"])
            for name in ("surplus", "tried"):
                values[name] = tuple(int(number) for number in given[name])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDataError(
                f"This verdict about a rank cannot be read: {error}. Check it again."
            ) from None


def _predict(ranks: list[int]) -> str:
    """Write "1 or 2 components predict held-out cells"."""
    components = counted(ranks[-1]).partition(" ")[2]
    return f"{_either(ranks)} {components} predict{'s' * (ranks == [1])} held-out cells"


def _either(ranks: list[int]) -> str:
    *others, last = map(str, ranks)
    return f"{', '.join(others)} or {last}" if others else last
