"""Options of ``smartcpd fit`` alone: how to fit, where results go; choices from the registries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smartcpd import constraints, losses
from smartcpd._app.cli.options import completer
from smartcpd._strategies import registry as solvers

METHOD, OUTPUT = "Method", "Output"
"""Names of the panels of the help."""

Rank = Annotated[
    int, typer.Option("--rank", "-r", min=1, metavar="N", help="Number of components.")
]
LossName = Annotated[
    str,
    typer.Option(
        "--loss",
        metavar="NAME",
        help=f"How the data was made: auto (from the values), {', '.join(losses.names())}"
        ". Parameters in brackets: 'huber(1.5)'.",
        autocompletion=completer(["auto", *losses.names()]),
        rich_help_panel=METHOD,
    ),
]
ConstraintName = Annotated[
    str,
    typer.Option(
        "--constraint",
        metavar="NAME",
        help=f"On the factors: auto, {', '.join(constraints.names())}.",
        autocompletion=completer(["auto", *constraints.names()]),
        rich_help_panel=METHOD,
    ),
]
SolverName = Annotated[
    str,
    typer.Option(
        "--solver",
        metavar="NAME",
        help=f"One of {', '.join(solvers.names())}.",
        autocompletion=completer(solvers.names()),
        rich_help_panel=METHOD,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="The same seed gives the same bits.",
        rich_help_panel=METHOD,
    ),
]
NumberOfStarts = Annotated[
    int,
    typer.Option(
        "--n-init",
        min=1,
        metavar="N",
        help="Starts that are compared.",
        rich_help_panel=METHOD,
    ),
]
Consensus = Annotated[
    bool,
    typer.Option(
        "--consensus",
        help="Run every start to its end, to say how surely each component is found.",
        rich_help_panel=METHOD,
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="SECONDS",
        help="When to stop, finished or not.",
        rich_help_panel=METHOD,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="Threads; all by default.",
        rich_help_panel=METHOD,
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="AMOUNT",
        help="What data may take before it is read in parts, such as 4GB; half of the memory by "
        "default.",
        rich_help_panel=METHOD,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Folder for the results; by default FILE-smartcpd.",
        metavar="DIR",
        rich_help_panel=OUTPUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace the run in the folder.", rich_help_panel=OUTPUT),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a run that was stopped.", rich_help_panel=OUTPUT),
]
CheckpointEvery = Annotated[
    float,
    typer.Option(
        "--checkpoint-every",
        min=0.0,
        metavar="SECONDS",
        rich_help_panel=OUTPUT,
        help="How often a run can be resumed from; 0 for never.",
    ),
]
