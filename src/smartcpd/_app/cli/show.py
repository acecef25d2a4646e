"""``smartcpd show``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from smartcpd._app.cli.console import print_json, printable, stdout
from smartcpd._app.cli.options import Json, RunPath
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd.quality import Quality

EXCESS = 0.05
"""The share of the deviance, above what a true model would explain, that speaks for chance."""
EXAMPLES = "Example: smartcpd show chicago_crime_2022-smartcpd --top 8"


def show(
    folder: RunPath,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="Labels of each mode.")] = 5,
    json: Json = False,
) -> None:
    """Print the components of a run with their top labels."""
    run = RunFolder(folder).load()
    if json:
        print_json(summary(run, RunFolder(folder), top))
        return
    print_run(run, top)
    stdout().print(Text(f"Report: {RunFolder(folder).report}"))


def print_run(run: RunRecord, top: int = 5) -> None:
    """Print what a person wants to know of a run."""
    from smartcpd._app.cli.components import print_components

    console = stdout()
    modes = " x ".join(f"{printable(m.name)} {len(m):,}" for m in run.model.named_modes)
    console.print(Text(f"{modes}, {counted(run.model.rank)}", style="bold"))
    console.print()
    print_components(console, run.shown, top, run.stability)
    console.print()
    for note in run.notes:
        console.print(Text(f"- {printable(note)}"))
    quality = run.quality
    if quality is not None and quality.deviance_explained is not None:
        console.print(Text(f"- {_explained(quality, run.model.rank)}"))
    console.print(Text(f"- {printable(str(run.status))}"))
    for finding in run.diagnosis or ():
        mark = (f"{finding.severity}: ", "bold yellow" if finding.severity == "warning" else "bold")
        console.print(Text.assemble(mark, printable(f"{finding.name}: {finding.brief}.")))


def counted(rank: int) -> str:
    return "1 component" if rank == 1 else f"{rank:,} components"


def _explained(quality: Quality, rank: int) -> str:
    share, best = quality.deviance_explained, quality.deviance_attainable
    assert share is not None
    sentence = f"The model explains {share:.1%} of the deviance"
    if best is None or quality.data == "measurements":
        return f"{sentence}."
    if share <= best:
        return f"{sentence}; of data drawn from the model itself it would explain {best:.1%}."
    if share - best > EXCESS and rank > 1:
        return f"{sentence}, more than of data drawn from the model itself: is the rank too high?"
    return f"{sentence}."


def summary(run: RunRecord, folder: RunFolder, top: int = 10) -> dict[str, Any]:
    """Return what a person wants to know of a run as JSON values, for programs."""
    from smartcpd._app.cli.components import described

    return {
        "folder": str(folder.path),
        "report": str(folder.report),
        "modes": [
            {"name": m.name, "size": len(m), "kind": str(m.kind)} for m in run.model.named_modes
        ],
        "rank": run.model.rank,
        "loss": str(run.model.loss_function),
        "mean_loss": run.loss,
        "solver": run.solver,
        "seconds": run.history[-1].time if run.history else None,
        "status": run.status._asdict(),
        "notes": list(run.notes),
        "quality": None if run.quality is None else run.quality.to_dict(),
        "diagnosis": None if run.diagnosis is None else run.diagnosis.to_dict(),
        "data": run.data,
        "command": run.command,
        "components": described(run.shown, top, run.stability),
    }
