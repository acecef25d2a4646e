"""Help pages, with changes to what typer shows beside the words written here."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


def _flags_take_nothing(params: list[Any]) -> list[Any]:
    """Remove the name of a type after flags, which looks as if they wanted a value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command with a tidy help page."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_take_nothing(super().get_params(ctx))


class Group(TyperGroup):
    """The program itself, with a tidy help page."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_take_nothing(super().get_params(ctx))
