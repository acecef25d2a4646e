"""The program: its commands, its errors, its exit codes."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from smartcpd._app.cli.codes import FAILED, INTERRUPTED, MISUSED
from smartcpd._app.cli.console import complain, print_json, say
from smartcpd._app.cli.help import Command, Group
from smartcpd._app.cli.options import in_flags, ungrouped
from smartcpd.errors import SmartCPDError

DEBUG = "SMARTCPD_DEBUG"
SHARED: dict[str, Any] = {
    "rich_markup_mode": "rich",
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Settings of the program and of each of its commands."""

COMMANDS = {
    "fit": "From a table or a tensor to named components and a page to read.",
    "select": "Which rank and which loss predict cells best that the fit did not see.",
    "show": "Print the components of a run with their top labels.",
    "report": "Write the page of a run again and print its path.",
    "predict": "Expected values of cells, and how surprising observed ones are.",
    "compare": "Match the components of two runs and say how alike they are.",
    "check": "Say what a file holds, which losses can describe it, and how to fit it.",
    "convert": "Write a tensor in another format; .npz, .nc and .parts keep labels.",
    "warm-up": "Compile what fits need before the first one, for images and shared machines.",
    "paper": "Run an experiment of the paper: figures, tables and raw runs.",
}
"""Commands, and what they do. Each is a function in a module of its name.

A module is imported when its command is run; the list of commands is printed from here.
"""


class Program(Group):
    """The program, which knows the names of its commands and imports those that are run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(Command(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            self.add_command(command_of(args[0]))
        return super().resolve_command(ctx, args)


def command_of(name: str) -> Any:
    """Import a command."""
    function = name.replace("-", "_")
    module = importlib.import_module(f"smartcpd._app.cli.{function}")
    alone = typer.Typer(**SHARED, add_completion=False)
    alone.command(name, cls=Command, epilog=getattr(module, "EXAMPLES", None))(
        guarded(ungrouped(getattr(module, function)))
    )
    return typer.main.get_command(alone)


app = typer.Typer(
    name="smartcpd",
    cls=Program,
    no_args_is_help=True,
    **SHARED,
    help="The hidden components of multi-way data, with the loss that fits the data.",
    epilog="Exit codes: 0 done, 1 error, 2 usage, 130 and 143 interrupted by Ctrl-C and SIGTERM "
    "(what was found is saved).",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from smartcpd._common.version import __version__

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
        os.environ[DEBUG] = "1"


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose errors are one sentence each, unless the user wants to see more."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            # The reader of our output has gone; Python would complain once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as interrupt:
            sentence = str(interrupt) or "Interrupted; nothing was saved."
            say(sentence)
            _tell(sentence, kwargs)
            raise typer.Exit(INTERRUPTED) from None
        except (SmartCPDError, OSError, MemoryError) as error:
            if os.environ.get(DEBUG):
                raise
            sentence = _sentence(error)
            complain(sentence)
            _tell(sentence, kwargs)
            raise typer.Exit(FAILED) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            sentence = (
                f"Something went wrong that should not have ({type(error).__name__}: {error}); "
                "--debug shows where."
            )
            complain(sentence)
            _tell(sentence, kwargs)
            raise typer.Exit(FAILED) from None

    return run


def _tell(sentence: str, options: Mapping[str, Any]) -> None:
    """Tell a program what went wrong, if one has asked for JSON."""
    if options.get("json"):
        print_json({"error": sentence})


def _sentence(error: BaseException) -> str:
    if isinstance(error, SmartCPDError):
        return in_flags(str(error))
    if isinstance(error, MemoryError):
        return f"There is not enough memory ({error or 'none left'}); 'smartcpd check' tells more."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return str(error)


def _warn(message: Warning | str, *where: Any, **more: Any) -> None:
    say(f"warning: {' '.join(str(message).split())}")


def commanded(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--debug" in given:  # the option may stand anywhere
        given.remove("--debug")
        given.insert(0, "--debug")
    else:
        warnings.showwarning = _warn
    # Commands print what notes of tables say; the log would say it once more.
    logging.getLogger("smartcpd.tables").addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A label that the terminal cannot show must not end the program.
            stream.reconfigure(errors="replace")
    if "--json" not in given:
        app(given, prog_name="smartcpd")
    try:
        sys.exit(app(given, prog_name="smartcpd", standalone_mode=False))
    except Exception as error:
        if not hasattr(error, "format_message"):  # which errors of usage have
            raise
        complain(error.format_message())
        print_json({"error": error.format_message()})
        sys.exit(MISUSED)
