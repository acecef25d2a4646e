"""Runs cases, prints what they yield, keeps it, and sets RESULTS.md from all that is kept."""

from __future__ import annotations

import datetime
import importlib
import inspect
import json
import logging
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import benchmarks.cases
from benchmarks.harness import machine
from benchmarks.real_data import NoDataError
from benchmarks.results import Record, Remark, Result, as_text, to_json

FOLDER = Path(__file__).parent
QUICK_FOLDER = FOLDER / "quick"
QUICK = (
    "iteration",
    "dense_peers",
    "dense_gaussian",
    "simplex",
    "growth",
    "sparse_chicago",
    "sparse_uci",
    "sparse_umls",
    "nyc_taxi",
    "two_threads",
)
"""What is run in minutes, unless cases are named."""


def available() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(benchmarks.cases.__path__)]


def run_named(names: list[str], quick: bool = False) -> None:
    """Run cases by name, by default all, or in their quick form those that say most."""
    from benchmarks.report import write_report

    folder = QUICK_FOLDER if quick else FOLDER
    logging.getLogger().setLevel(logging.ERROR)  # pyttb warns of every copy it has to make
    for name in names or (QUICK if quick else available()):
        case = importlib.import_module(f"benchmarks.cases.{name}")
        takes_quick = "quick" in inspect.signature(case.run).parameters
        options = {"quick": True} if quick and takes_quick else {}
        run_case(name, case.__doc__ or name, case.run, folder, **options)
        write_report(folder, quick)


def run_case(
    name: str,
    doc: str,
    run: Callable[..., Iterable[Result | str]],
    folder: Path,
    **options: Any,
) -> Record | None:
    """Run one case; its record replaces that of an earlier run, unless its data is missing."""
    title, _, about = inspect.cleandoc(doc).partition("\n\n")
    title = " ".join(title.split())
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    record = Record(name, title, " ".join(about.split()), machine(), today)
    print(f"\n== {name}: {title}", flush=True)
    try:
        for result in run(**options):
            kept = to_json(Remark(result) if isinstance(result, str) else result)
            record.results.append(kept)
            line = as_text(kept)
            if line:
                print(line, flush=True)
    except NoDataError as reason:
        print(f"skipped: {reason}", flush=True)
        return None
    path = folder / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n")
    return record


def stored(folder: Path) -> list[Record]:
    """All records of a folder, by name."""
    paths = sorted((folder / "results").glob("*.json"))
    return [Record(**json.loads(path.read_text())) for path in paths]
