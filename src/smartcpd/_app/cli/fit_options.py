"""Options of how to fit and of where results go; choices come from the registries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from smartcpd import constraints, losses
from smartcpd._app.cli.options import completer, flag
from smartcpd._strategies import registry as solvers

method_option = partial(typer.Option, rich_help_panel="Method")
output_option = partial(typer.Option, rich_help_panel="Output")

Rank = Annotated[
    str,
    typer.Option(
        "--rank",
        "-r",
        metavar="N|auto",
        help="Number of components; auto compares 1 to 20 on held-out cells, which takes longer "
        "than one fit. It chooses the rank only; 'smartcpd select' compares losses, too.",
    ),
]
Names = Annotated[
    list[str] | None,
    output_option(
        "--name",
        metavar="WHAT=NAME",
        help="A name for a mode (time@1d=day) or for a component by its number (1=commuters).",
    ),
]
LossName = Annotated[
    str,
    method_option(
        "--loss",
        metavar="NAME",
        help=f"How the data was made: auto (from the values), {', '.join(losses.names())}"
        ". Parameters in brackets: 'huber(1.5)'.",
        autocompletion=completer(["auto", *losses.names()]),
    ),
]
ConstraintName = Annotated[
    str,
    method_option(
        "--constraint",
        metavar="NAME",
        help=f"On the factors: auto, {', '.join(constraints.names())}.",
        autocompletion=completer(["auto", *constraints.names()]),
    ),
]
SolverName = Annotated[
    str,
    method_option(
        "--solver",
        metavar="NAME",
        help=f"One of {', '.join(solvers.names())}.",
        autocompletion=completer(solvers.names()),
    ),
]
Seed = Annotated[
    int,
    method_option("--seed", min=0, metavar="N", help="The same seed gives the same bits."),
]
MaxTime = Annotated[
    float | None,
    method_option("--max-time", metavar="SECONDS", help="When to stop, finished or not."),
]


@dataclass(frozen=True)
class Method:
    """How to fit, by the names of the parameters of a fit."""

    constraint: ConstraintName = "auto"
    solver: SolverName = "auto"
    random_state: Seed = 0
    n_init: Annotated[
        int, method_option("--n-init", min=1, metavar="N", help="Starts that are compared.")
    ] = 1
    effort: Annotated[
        float,
        method_option(
            "--effort",
            min=0.0,
            metavar="X",
            help="How long to search for better solutions: 2 for twice as long, 0 for one run.",
        ),
    ] = 1.0
    consensus: Annotated[
        bool,
        method_option(
            "--consensus",
            help="Run every start to its end, to say how surely each component is found.",
        ),
    ] = False
    max_time: MaxTime = None
    n_threads: Annotated[
        int | None,
        method_option("--threads", min=1, metavar="N", help="Threads; all by default."),
    ] = None
    max_memory: Annotated[
        str | None,
        method_option(
            "--max-memory",
            metavar="AMOUNT",
            help="What data may take before it is read in parts, such as 4GB; half of the memory "
            "by default.",
        ),
    ] = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the fit, without those that say nothing."""
        return {n: v for n, v in vars(self).items() if v is not None and v is not False}

    def words(self) -> list[str]:
        """Return what the user chose, as words of a command line."""
        found = []
        for name, value in vars(self).items():
            if value != getattr(Method, name):
                found += [flag(name)] if value is True else [flag(name), str(value)]
        return found


Out = Annotated[
    Path | None,
    output_option(
        "--out", "-o", metavar="DIR", help="Folder for the results; by default FILE-smartcpd."
    ),
]
Force = Annotated[bool, output_option("--force", help="Replace the run in the folder.")]
Resume = Annotated[bool, output_option("--resume", help="Go on with a run that was stopped.")]
CheckpointEvery = Annotated[
    float,
    output_option(
        "--checkpoint-every",
        min=0.0,
        metavar="SECONDS",
        help="How often a run can be resumed from; 0 for never.",
    ),
]
