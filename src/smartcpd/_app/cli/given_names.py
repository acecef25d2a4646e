"""Names that a user gives to modes and to components."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import typer

from smartcpd.errors import InvalidParameterError


@dataclass(frozen=True)
class GivenNames:
    """Names by what they stand for."""

    modes: dict[str, str] = field(default_factory=dict)
    components: dict[int, str] = field(default_factory=dict)
    """By the number of a component as it is shown, from 1."""

    @classmethod
    def read(cls, given: Iterable[str] | None) -> GivenNames:
        """Read ``what=name``; a wrong text is a usage error."""
        found = cls()
        for text in given or ():
            what, equals, name = (piece.strip() for piece in text.partition("="))
            if not (what and equals and name):
                raise typer.BadParameter(
                    f"{text!r} is not of the form WHAT=NAME, such as time@1d=day or 1=commuters",
                    param_hint="--name",
                )
            if what.isdigit():
                found.components[int(what)] = name
            else:
                found.modes[what] = name
        return found

    def on_modes(self, X: Any) -> Any:
        """The data with its modes renamed."""
        from smartcpd._data.labelled import LabelledTensor, taken_off
        from smartcpd._data.labels import Mode

        if not self.modes:
            return X
        tensor, modes = taken_off(X)
        if modes is None:
            modes = tuple(Mode.numbered(f"mode {n}", size) for n, size in enumerate(X.shape))
        known = [mode.name for mode in modes]
        for what, name in self.modes.items():
            if what not in known:
                raise InvalidParameterError(
                    f"--name {what}={name}: there is no mode {what!r}; modes are "
                    f"{', '.join(known)}."
                )
        renamed = tuple(Mode(self.modes.get(m.name, m.name), m.labels, m.kind) for m in modes)
        if not isinstance(X, LabelledTensor):
            return LabelledTensor(tensor, renamed)
        return replace(X, modes=renamed)

    def check_rank(self, rank: int) -> None:
        """Raise an error if a component that is named cannot be there."""
        for number, name in self.components.items():
            if not 1 <= number <= rank:
                raise InvalidParameterError(
                    f"--name {number}={name}: components are numbered from 1 to {rank}."
                )

    def words(self) -> list[str]:
        """The names as words of a command line."""
        pairs = [*self.modes.items(), *self.components.items()]
        return [word for what, name in pairs for word in ("--name", f"{what}={name}")]
