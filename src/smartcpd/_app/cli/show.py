"""``smartcpd show``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from smartcpd._app.cli.console import print_json, printable, stdout
from smartcpd._app.cli.options import Json, RunPath
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd._inference.wording import counted
from smartcpd.report.naming import named

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
    modes = " x ".join(f"{printable(m.name)} {len(m):,}" for m in named(run.model.named_modes))
    console.print(Text(f"{modes}, {counted(run.model.rank)}", style="bold"))
    console.print()
    print_components(console, run.shown, top, run.stability, run.names)
    console.print()
    for note in run.notes:
        console.print(Text(f"- {printable(note)}"))
    quality = run.quality
    if quality is not None and quality.deviance_explained is not None:
        share = quality.deviance_explained
        console.print(Text(f"- The model explains {share:.1%} of the deviance."))
    if run.rank is not None and run.rank.headline:
        style = "" if run.rank.suits == "well" else "bold yellow"
        sentence = f"{run.rank.headline} {run.rank.named_surplus()}".strip()
        console.print(Text.assemble("- ", (sentence, style)))
    elif run.rank is not None:
        why = "time or data did not suffice; 'smartcpd select' compares ranks"
        console.print(Text(f"- Whether the rank suits was not found out: {why}."))
    console.print(Text(f"- {printable(str(run.status))}"))
    for finding in run.diagnosis or ():
        if finding.name.startswith("rank "):
            continue  # was said already
        mark = (f"{finding.severity}: ", "bold yellow" if finding.severity == "warning" else "bold")
        console.print(Text.assemble(mark, printable(f"{finding.name}: {finding.brief}.")))


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
        "rank_check": None if run.rank is None else run.rank.to_dict(),
        "data": run.data,
        "command": run.command,
        "selection": run.selection,
        "components": described(run.shown, top, run.stability),
    }
