"""The program: its commands, its errors, its exit codes."""

from __future__ import annotations

import functools
import importlib
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

COMMANDS = ("fit", "select", "show", "report", "predict", "compare", "check", "convert", "paper")
"""Modules of this package, each with a function of its name."""
DEBUG = "SMARTCPD_DEBUG"

app = typer.Typer(
    name="smartcpd",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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


for _name in COMMANDS:
    _module = importlib.import_module(f"smartcpd._app.cli.{_name}")
    app.command(_name, cls=Command, epilog=getattr(_module, "EXAMPLES", None))(
        guarded(ungrouped(getattr(_module, _name)))
    )
