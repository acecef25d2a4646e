"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text


def stdout() -> Console:
    """Return a console, made anew each time so that redirection is respected."""
    return Console(highlight=False, soft_wrap=True)


def stderr() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(sentence: str, quiet: bool = False) -> None:
    """Print something that is not a result."""
    if not quiet:
        stderr().print(Text(printable(sentence), style="dim"))


@contextmanager
def waiting(sentence: str, quiet: bool = False) -> Iterator[None]:
    """Say what is done now; on a terminal a bar moves beside the seconds until it is done."""
    say(sentence, quiet)
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    with Progress(BarColumn(), TimeElapsedColumn(), console=stderr(), transient=True) as bar:
        bar.add_task(sentence, total=None)
        yield


def complain(sentence: str) -> None:
    stderr().print(Text.assemble(("error: ", "bold red"), printable(sentence)))


def print_json(value: Any) -> None:
    """Print one JSON value; NaN and infinity, which JSON does not have, become null."""
    from smartcpd._app.run_folder.record import plain

    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def printable(text: str) -> str:
    """Remove control characters: labels come from data and could move the cursor."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
