"""``smartcpd select``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from smartcpd._app.cli import fit_options as how
from smartcpd._app.cli import options
from smartcpd._app.cli.console import print_json, printable, say, stdout, waiting
from smartcpd._app.cli.inputs import described, load, stem
from smartcpd._app.cli.table_options import TableOptions
from smartcpd._app.signals import signals
from smartcpd._data.tables.wishes import parted
from smartcpd.errors import InvalidParameterError, MissingExtraError

EXAMPLES = """\
Examples:

smartcpd select counts.tns

smartcpd select events.csv.gz --modes date,hour,area,type --ranks 5,10,20,30

smartcpd select sales.parquet --modes day,shop,product --value amount --losses gamma,gaussian
"""

Ranks = Annotated[
    str,
    typer.Option(
        "--ranks", metavar="LOW-HIGH", help="Numbers of components to try: '1-20' or '5,10,20'."
    ),
]
Losses = Annotated[
    str,
    how.method_option(
        "--losses",
        metavar="NAME,...",
        help="Losses to compare, the plainest first; auto takes those that suit the values. "
        "'negative-binomial' has its r estimated.",
    ),
]
Folds = Annotated[
    int, how.method_option("--cv", min=2, metavar="N", help="Folds of held-out cells.")
]
Holdout = Annotated[
    str,
    how.method_option("--holdout", metavar="WHAT", help="What is held out: cells or fibers."),
]
FiberMode = Annotated[
    str,
    how.method_option(
        "--fiber-mode",
        metavar="MODE",
        help="Along which mode fibers run, by its number from 0 or its name.",
    ),
]
Restarts = Annotated[
    int,
    how.method_option(
        "--restarts",
        min=1,
        metavar="N",
        help="Fits to all of the data that are compared with each other.",
    ),
]
Jobs = Annotated[
    int,
    how.method_option(
        "--jobs", metavar="N", help="Fits at the same time; -1 for as many as there are cores."
    ),
]
Picture = Annotated[
    Path | None,
    how.output_option(
        "--plot", metavar="FILE", help="The picture (.png, .svg, .pdf); by default FILE-select.png."
    ),
]
NoPicture = Annotated[bool, how.output_option("--no-plot", help="Draw no picture.")]


def select(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A table or a tensor, as 'smartcpd fit' takes it."),
    ],
    table: TableOptions,
    ranks: Ranks = "1-20",
    losses: Losses = "auto",
    constraint: how.ConstraintName = "auto",
    solver: how.SolverName = "auto",
    cv: Folds = 5,
    holdout: Holdout = "cells",
    fiber_mode: FiberMode = "0",
    restarts: Restarts = 3,
    seed: how.Seed = 0,
    max_time: how.MaxTime = None,
    jobs: Jobs = -1,
    plot: Picture = None,
    no_plot: NoPicture = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Which rank and which loss predict cells best that the fit did not see.

    Prints a table of all candidates and a recommendation, and draws a picture. --max-time holds for
    every single fit.
    """
    wanted = whole_range(ranks)
    named = "auto" if losses == "auto" else [name.strip() for name in parted(losses)]
    picture = None if no_plot else picture_of(file, plot, quiet)
    from smartcpd._inference.selection import select as find

    with waiting(f"Reading {file} ...", quiet):
        X = load(file, table)
    signals.heed()
    say(f"Comparing ranks of {described(X)} ...", quiet)
    found = find(
        X,
        wanted,
        named,
        cv=cv,
        holdout=holdout,
        fiber_mode=int(fiber_mode) if fiber_mode.isdigit() else fiber_mode,
        n_restarts=restarts,
        n_jobs=jobs,
        random_state=seed,
        progress=(lambda line: None) if quiet else say,
        constraint=constraint,
        solver=solver,
        max_time=max_time,
    )
    if picture is not None:
        draw(found, picture)
    words = ["smartcpd", "fit", file, *table.words(), "--rank", str(found.rank)]
    show(found, shlex.join([*words, "--loss", str(found.loss)]), picture, json, quiet)


def whole_range(text: str) -> list[int]:
    """Read ``1-20`` or ``5,10,20`` as numbers; a wrong text is a usage error."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        high = high if dash else low
        if not (low.isdigit() and high.isdigit() and 1 <= int(low) <= int(high)):
            raise typer.BadParameter(
                f"{part!r} is not of the form LOW-HIGH or N, such as 1-20 or 5,10,20",
                param_hint="--ranks",
            )
        found += range(int(low), int(high) + 1)
    return found


def picture_of(file: str, wanted: Path | None, quiet: bool) -> Path | None:
    """Return where the picture goes, after checking that it can be drawn before anything is
    fitted.
    """
    from smartcpd.plots.figure import pyplot

    try:
        pyplot()
    except MissingExtraError as error:
        if wanted is not None:
            raise
        say(f"No picture: {error}", quiet)
        return None
    from matplotlib.backend_bases import FigureCanvasBase

    path = wanted or Path(f"{stem(file)}-select.png")
    endings = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in endings:
        raise InvalidParameterError(
            f"--plot {path} has no ending of a picture; use one of {', '.join(sorted(endings))}."
        )
    if not path.absolute().parent.is_dir():
        raise InvalidParameterError(f"--plot {path}: there is no folder {path.absolute().parent}.")
    return path


def draw(found: Any, path: Path) -> None:
    """Draw the picture without pyplot, which would look for a display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    found.plot(figure.subplots())
    figure.savefig(path, dpi=150)


def show(found: Any, command: str, picture: Path | None, json: bool, quiet: bool) -> None:
    """Print the table and the sentence on standard output, what to do next on standard error."""
    if json:
        print_json(
            {
                "rank": found.rank,
                "loss": str(found.loss),
                "recommendation": found.recommendation,
                "table": found.table,
                "left_out": found.left_out,
                "seconds": found.seconds,
                "command": command,
                "picture": None if picture is None else str(picture),
            }
        )
        return
    stdout().print(Text(printable(found.recommendation if quiet else str(found))))
    if picture is not None:
        stdout().print(Text(f"Picture: {picture}"))
    say(f"Next: {command}", quiet)
