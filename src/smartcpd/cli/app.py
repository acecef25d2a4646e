"""The program: its commands, its errors, its exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from smartcpd.errors import SmartCPDError

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
COMMANDS = ("paper",)
"""Modules of this package, each with a function of its name."""

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)

app = typer.Typer(
    name="smartcpd",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The hidden components of multi-way data, with the loss that fits the data.",
    epilog="Exit codes: 0 done, 1 error, 2 usage, 130 interrupted (what was found is saved).",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from smartcpd import __version__

        typer.echo(f"smartcpd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    if debug:
        os.environ["SMARTCPD_DEBUG"] = "1"


def main() -> None:
    """Run a command; every error is one sentence, unless the user wants to see more."""
    for name in COMMANDS:
        command: Callable[..., Any] = getattr(importlib.import_module(f"smartcpd.cli.{name}"), name)
        app.command(name)(command)
    try:
        app()
    except (SmartCPDError, OSError) as error:
        if os.environ.get("SMARTCPD_DEBUG"):
            raise
        stderr.print(f"[bold red]error:[/] {_escaped(error)}", soft_wrap=True)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        stderr.print("Interrupted.")
        sys.exit(INTERRUPTED)


def _escaped(error: BaseException) -> str:
    from rich.markup import escape

    return escape(str(error))
