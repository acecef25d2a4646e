"""Runs an experiment: the trials that are not there yet, then its figures and tables."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from smartcpd._app.paper.contenders import Contender, Snapshot, Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.figures import require_matplotlib, save
from smartcpd._app.paper.judging import judged
from smartcpd._app.paper.machine import machine
from smartcpd._app.paper.runs import RAW, Row, Runs
from smartcpd._common.version import __version__

TRIAL_SEEDS = 1_000_003
"""Distance between the seeds of trials of neighbouring --seed."""
SECTION = "section.md"
"""The file with an experiment's part of the page of all experiments."""
SPACING = 1.3
"""Rows that are kept are later than the one before by this factor, unless they say more."""
WARM_UP = 99_991
"""The seed of a data set of its own, on which everything is compiled."""


@dataclass(frozen=True)
class Outcome:
    """The files and warnings that an experiment left behind."""

    folder: Path
    files: list[Path]
    new_runs: int
    old_runs: int
    warnings: list[str]
    """Warnings that a reader of the files must not overlook."""


def folder_of(experiment: Experiment, options: Options, out: Path) -> Path:
    """Return the folder of an experiment; quick runs have one of their own, as they are no
    evidence.
    """
    return out / (f"{experiment.name}-quick" if options.quick else experiment.name)


def run(experiment: Experiment, options: Options, out: Path) -> Outcome:
    """Run what is missing and write the files."""
    require_matplotlib()
    plan = options.applied_to(experiment.plan(options))
    folder = folder_of(experiment, options, out)
    runs = Runs(folder)
    runs.agree_on(_settings(experiment, options, plan))
    before = len(runs)
    with warnings.catch_warnings():
        # A budget ends most fits of a race, and one run of each is all that is wanted.
        warnings.filterwarnings("ignore", "(Stopped|Diverged|Not confirmed)", UserWarning)
        _run_missing(experiment, options, plan, runs)
        files = _write(experiment, options, plan, runs)
    loud = [remark for remark in plan.remarks if "SIMULATED" in remark]
    return Outcome(folder, files, len(runs) - before, before, loud)


def _settings(experiment: Experiment, options: Options, plan: Plan) -> dict[str, object]:
    return {
        "experiment": experiment.name,
        "quick": options.quick,
        "seed": options.seed,
        "budget": {panel.name: panel.budget.words() for panel in plan.panels},
        "data": {panel.name: panel.data for panel in plan.panels},
        "solvers": {p.name: {c.name: c.settings for c in p.contenders} for p in plan.panels},
    }


def _missing(
    plan: Plan, runs: Runs, only: str = ""
) -> Iterator[tuple[Panel, int, list[Contender]]]:
    """Yield the missing runs trial by trial over all panels, so that an interrupted experiment has
    a bit of everything.
    """
    for trial in range(plan.trials):
        for panel in plan.panels:
            wanted = [c for c in panel.contenders if only in c.name]
            left = [c for c in wanted if not runs.has(panel.name, trial, c.name)]
            if left:
                yield panel, trial, left


def _run_missing(experiment: Experiment, options: Options, plan: Plan, runs: Runs) -> None:
    todo = list(_missing(plan, runs, options.only))
    if not todo:
        return
    warm: set[tuple[object, ...]] = set()
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        shown = bar.add_task(experiment.name, total=sum(len(left) for _, _, left in todo))
        for panel, trial, left in todo:
            task = panel.make(options.seed * TRIAL_SEEDS + trial)
            for contender in left:
                what = f"{experiment.name}, {panel.name}, {contender.name}"
                code = (contender.name, *task.kind)
                if code not in warm:
                    bar.update(shown, description=f"{what}: warming up")
                    contender.warm_up(panel.make(options.seed * TRIAL_SEEDS + WARM_UP))
                    warm.add(code)
                bar.update(shown, description=f"{what}, trial {trial + 1} of {plan.trials}")
                snapshots = contender.run(replace(task, budget=panel.budget))
                runs.add(thinned(_rows(panel.name, trial, contender.name, task, snapshots)))
                bar.advance(shown)


def _rows(
    panel: str, trial: int, solver: str, task: Task, snapshots: list[Snapshot]
) -> Iterator[Row]:
    """Judge what a solver had, now that its clock has stopped."""
    for shot in snapshots:
        times = (shot.time, shot.entries, shot.epoch)
        final = int(shot is snapshots[-1])
        yield Row(panel, trial, solver, *times, *judged(task, shot), final)


def thinned(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that figures and tables need: moments far enough apart, the first at which an
    error is below another power of ten, and the last.
    """
    kept: list[Row] = []
    lowest = math.inf
    for row in rows:
        is_later = not kept or row.time >= SPACING * kept[-1].time
        if is_later or row.final or _power_above(row.mse) < lowest:
            kept.append(row)
        lowest = min(lowest, _power_above(row.mse))
    return kept


def _power_above(error: float) -> float:
    """Return the exponent of the least power of ten that an error does not exceed; infinity where
    it is not known.
    """
    return math.ceil(math.log10(error)) if error > 0 else math.inf


def _write(experiment: Experiment, options: Options, plan: Plan, runs: Runs) -> list[Path]:
    """Write figures and tables; those of an earlier call are replaced."""
    folder = runs.folder
    files = [folder / RAW] if len(runs) else []
    figures = experiment.figures(plan, runs)
    for name, figure in figures.items():
        files += save(figure, folder / name)
    tables = experiment.tables(plan, runs)
    for table in tables:
        path = folder / f"{table.name}.csv"
        path.write_text(table.csv())
        files.append(path)
    report = folder / "README.md"
    pictures = [f"![{experiment.title}]({name}.png)" for name in figures]
    shown = [*pictures, *(table.markdown() for table in tables)]
    outline = [*_remarks(options, plan), *_effort(options, plan, runs)]
    details = [*outline, *_settings_in_words(plan), *shown]
    _join(report, [f"# {experiment.name}: {experiment.title}", _about(experiment), *details])
    title = f"**{experiment.title[0].upper()}{experiment.title[1:]}.**"
    about = f"{title} {_about(experiment)}"
    _join(folder / SECTION, [f"## {experiment.name}", about, *outline, *shown])
    return [*files, report]


def _join(path: Path, parts: Iterable[str]) -> None:
    path.write_text("\n\n".join(part.rstrip() for part in parts) + "\n")


def _about(experiment: Experiment) -> str:
    return f"In the paper: {experiment.shows}."


def _remarks(options: Options, plan: Plan) -> Iterator[str]:
    """Yield what readers of the figures must not overlook."""
    if options.quick:
        yield (
            "**A quick run**: smaller tensors, few trials and short limits, to see that it works. "
            "Its figures are not comparable with the paper's; run it without `--quick` for those."
        )
    for remark in plan.remarks:
        yield f"**{remark}**" if "SIMULATED" in remark else remark


def _effort(options: Options, plan: Plan, runs: Runs) -> Iterator[str]:
    """Yield how much was run."""
    if not plan.panels:
        return
    counts = [len(runs.of(p.name, c.name)) for p in plan.panels for c in p.contenders]
    least, most = min(counts), max(counts)
    made = f"{least}" if least == most else f"{least} to {most}"
    budgets = dict.fromkeys(p.budget.words() for p in plan.panels)
    yield (
        f"{made} trials of each solver, seed {options.seed}, budget of a solver "
        f"{', '.join(budgets)}."
    )


def _settings_in_words(plan: Plan) -> Iterator[str]:
    """Yield what else is needed to judge the figures, and to repeat them."""
    if not plan.panels:
        return
    yield (
        "Every solver runs on one thread, until its own criterion is met or its budget is spent. "
        "Seconds are the processor's; they leave out compilation and all that only the figure "
        "needs. An epoch is as many entries as the tensor has, as in the paper."
    )
    data = "\n".join(f"- {p.name}: {p.data}; budget {p.budget.words()}" for p in plan.panels)
    yield f"Data:\n\n{data}"
    settings = {c.name: c.settings for panel in plan.panels for c in panel.contenders}
    yield "Solvers:\n\n" + "\n".join(f"- {name}: {text}" for name, text in settings.items())
    day = datetime.date.today().isoformat()
    yield f"smartcpd {__version__}, {day}. {machine()}."
