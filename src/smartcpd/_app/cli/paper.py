"""``smartcpd paper``: the experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smartcpd._app.cli.console import say, stdout

if TYPE_CHECKING:
    from smartcpd._app.paper.experiment import Experiment

CLAIMS = "claims"


def paper(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="One of count, binary, continuous, simplex, steps, contours, chicago, "
            "pollinators, uci, sensitivity, ranks, theory; or claims, which sums up what has been "
            "run.",
            show_default="list them",
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials; 20 as in the paper, 2 or 3 with --quick.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small and short, to see that it works; kept apart.")
    ] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Add pyttb, GenTen and TensorLy, where installed.")
    ] = False,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Use a simulated stand-in for real data that is missing."),
    ] = False,
    limit: Annotated[
        float | None, typer.Option(min=0.1, help="Processor seconds for each solver in a trial.")
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option(min=1, help="Entries that each solver may read, in passes over the tensor."),
    ] = None,
    only: Annotated[
        str, typer.Option(help='Run only solvers whose name has this in it, such as "published".')
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Other data and other starts.")] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for the results, one folder an experiment.")
    ] = Path("paper"),
) -> None:
    """Run an experiment of the paper: figures, tables and raw runs.

    Trials that are there already are kept: an interrupted experiment goes on where it was, and a
    larger --trials adds to it.
    """
    from smartcpd._app.paper.experiments import EXPERIMENTS, get

    if experiment is None:
        _list(EXPERIMENTS)
        return
    if experiment == CLAIMS:
        from smartcpd._app.paper import page

        for path in page.write(out):
            _print(str(path))
        return
    from smartcpd._app.paper.experiment import Options
    from smartcpd._app.paper.runner import run

    options = Options(quick, peers, simulate, seed, trials, limit, epochs, only)
    outcome = run(get(experiment), options, out)
    if outcome.old_runs:
        say(f"{outcome.old_runs} runs were there already, {outcome.new_runs} new.")
    for warning in outcome.warnings:
        say(f"note: {warning}")
    for path in outcome.files:
        _print(str(path))


def _list(experiments: dict[str, Experiment]) -> None:
    width = max(map(len, [*experiments, CLAIMS]))
    for name, found in experiments.items():
        _print(f"{name:{width}}  {found.title}")
    _print(f"{CLAIMS:{width}}  each claim of the paper next to what the experiments run so far say")


def _print(line: str) -> None:
    stdout().print(line, markup=False)
