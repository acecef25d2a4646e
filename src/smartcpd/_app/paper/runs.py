"""The raw runs of an experiment: a compressed CSV file, small enough to be kept with the code."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from smartcpd._common.atomic import replace_file
from smartcpd.errors import IncompatibleError, InvalidDataError

RAW, SETTINGS = "runs.csv.gz", "settings.json"
DIGITS = {"time": 3, "entries": 3, "loss": 6, "mse": 3}
"""Digits that are kept of a number."""


class Row(NamedTuple):
    """The state of a solver after some seconds of a trial."""

    panel: str
    trial: int
    solver: str
    time: float
    entries: float
    epoch: int
    loss: float
    mse: float
    missed: float
    """Number of true components that were not found; NaN where the truth is not known."""
    final: int
    """1 in the last row of a run, which is its result."""


class Run(NamedTuple):
    """The rows of one solver in one trial as columns."""

    panel: str
    trial: int
    solver: str
    time: np.ndarray
    entries: np.ndarray
    epoch: np.ndarray
    loss: np.ndarray
    mse: np.ndarray
    missed: np.ndarray

    def first(self, measure: str, target: float, scale: str = "time") -> float:
        """Return the time, or the entries, at which the measure first was at most the target;
        infinity if never.
        """
        reached = np.flatnonzero(getattr(self, measure) <= target)
        return float(getattr(self, scale)[reached[0]]) if reached.size else float("inf")

    def final(self, measure: str) -> float:
        return float(getattr(self, measure)[-1])

    def after(self, measure: str, amount: float, scale: str = "time") -> float:
        """Return the measure when so much time, or entries, had been spent, on a straight line
        between the looks before and after; NaN before the first.
        """
        spent = getattr(self, scale)
        if amount < spent[0]:
            return float("nan")
        return float(np.interp(amount, spent, getattr(self, measure)))


class Runs:
    """All complete runs of an experiment, on disk and in memory.

    Parameters
    ----------
    folder : Path
        The folder of the file, made when the first run is added.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[tuple[str, int, str], Run] = {}
        path = folder / RAW
        if path.is_file():
            self._read(path)

    def __len__(self) -> int:
        return len(self.runs)

    def has(self, panel: str, trial: int, solver: str) -> bool:
        return (panel, trial, solver) in self.runs

    def of(self, panel: str, solver: str | None = None) -> list[Run]:
        """Return the runs of a solver, or of all, in order of the trials."""
        keys = sorted(k for k in self.runs if k[0] == panel and solver in (None, k[2]))
        return [self.runs[k] for k in keys]

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(k[0] for k in self.runs))

    def finals(self, panel: str, solver: str, measure: str) -> np.ndarray:
        return np.array([run.final(measure) for run in self.of(panel, solver)])

    def seconds_to(self, panel: str, solver: str, measure: str, target: float) -> np.ndarray:
        return np.array([run.first(measure, target) for run in self.of(panel, solver)])

    def entries_to(self, panel: str, solver: str, measure: str, target: float) -> np.ndarray:
        return np.array([run.first(measure, target, "entries") for run in self.of(panel, solver)])

    def mapped(self, change: Callable[[Run], Run]) -> Runs:
        """Return the same runs with something changed, for a figure."""
        other = Runs(self.folder)
        other.runs = {key: change(run) for key, run in self.runs.items()}
        return other

    def add(self, rows: Iterable[Row]) -> None:
        """Add a run, and write the file anew at once, so that an interrupt loses no other.

        One process at a time may add to a folder.
        """
        self._keep([_rounded(row) for row in rows])
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / RAW, self._packed())

    def _packed(self) -> bytes:
        """Return the file's content, the same for the same runs: solver by solver, as lines that
        follow each other should be alike.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(Row._fields)
        for key in sorted(self.runs, key=lambda key: (key[0], key[2], key[1])):
            columns = self.runs[key][3:]
            last = len(columns[0]) - 1
            for n, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
                writer.writerow([*key, *map(_short, values), int(n == last)])
        return gzip.compress(text.getvalue().encode(), mtime=0)

    def _read(self, path: Path) -> None:
        waiting: dict[tuple[str, int, str], list[Row]] = {}
        types = get_type_hints(Row)
        try:
            with gzip.open(path, "rt", newline="") as file:
                for found in csv.DictReader(file):
                    row = Row(**{name: kind(found[name]) for name, kind in types.items()})
                    waiting.setdefault(row[:3], []).append(row)
                    if row.final:
                        self._keep(waiting.pop(row[:3]))
        except (KeyError, ValueError, TypeError, EOFError, gzip.BadGzipFile) as error:
            raise InvalidDataError(
                f"{path} is not a file of runs ({error}); remove it, or choose another --out."
            ) from None

    def _keep(self, rows: list[Row]) -> None:
        columns = [np.array(column) for column in zip(*(row[3:-1] for row in rows), strict=True)]
        self.runs[rows[0][:3]] = Run(*rows[0][:3], *columns)

    def agree_on(self, settings: dict[str, Any]) -> None:
        """Refuse to mix runs that were made differently; keep the settings next to the runs.

        Parts that only one side has (a panel, a solver that was added) do not clash.
        """
        text = json.dumps(self._joined(self.settings(), settings), indent=2) + "\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / SETTINGS).write_text(text)

    def _joined(self, old: Any, new: Any, where: tuple[str, ...] = ()) -> Any:
        """Return what both sides have, level by level; raise an error where they differ."""
        if isinstance(old, dict) and isinstance(new, dict):
            both = {k: self._joined(old[k], new[k], (*where, k)) for k in new if k in old}
            return {**old, **new, **both}
        if old == new:
            return new
        raise IncompatibleError(
            f"{self.folder} holds runs with {', '.join(where)} = {old!r}, and this call has "
            f"{new!r}. Choose another folder with --out, or remove that one."
        )

    def settings(self) -> dict[str, Any]:
        path = self.folder / SETTINGS
        return json.loads(path.read_text()) if path.is_file() else {}


def _rounded(row: Row) -> Row:
    """Return a row with as many digits as are kept, so that what is judged now and what is read
    later are the same.
    """
    short = {name: float(f"{getattr(row, name):.{n}g}") for name, n in DIGITS.items()}
    return Row(**{**row._asdict(), **short})


def _short(value: float) -> str:
    """Return a number without a point that nothing follows."""
    return f"{value!r}".removesuffix(".0")
