"""Everything worth keeping of a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd._common.version import installed
from smartcpd._fitting.answers.diagnosis import Diagnosis
from smartcpd._fitting.consensus import Stability
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import Readable, readable
from smartcpd._inference.rank_check.verdict import RankVerdict
from smartcpd._problem.history import History, Record, Status
from smartcpd.quality import Quality

PACKAGES = ("smartcpd", "numpy", "numba", "scipy", "duckdb")
"""What a fit depends on."""


@dataclass(frozen=True)
class RunRecord:
    """What is kept of a fit: the model, how it came about, and what was found out about it.

    Attributes
    ----------
    model : CPModel
        Components in order of their shares.
    loss : float
        Mean loss on the data.
    history, status : History, Status
    solver : str
    settings : dict
        What the user chose, by the names of the parameters.
    data : dict
        Where the data came from, its shape and its fingerprint.
    quality : Quality, optional
    dispersion : float, optional
        How widely the data scatters, where the loss leaves that open.
    stability : Stability, optional
        How surely each component was found again by other starts.
    diagnosis : Diagnosis, optional
        What may be wrong with the fit.
    rank : RankVerdict, optional
        How the rank suits the data.
    names : mapping
        The user's names of components, by their numbers from 1.
    selection : dict, optional
        What was found of other ranks, where the rank was left open.
    names_in_data : mapping
        What modes are called in the data, by the names that the user gave them.
    notes : tuple of str
        What the reader should know: rows left out, the choice of the loss.
    command : str, optional
        The command line that repeats the run.
    title : str, optional
    versions : dict
    created : str
        Time of the end of the fit, UTC.
    as_read : Readable, optional
        The model as people read it, if that is known already.
    """

    model: CPModel
    loss: float
    history: History
    status: Status
    solver: str
    settings: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    quality: Quality | None = None
    dispersion: float | None = None
    notes: tuple[str, ...] = ()
    command: str | None = None
    title: str | None = None
    versions: dict[str, str] = field(default_factory=lambda: installed(PACKAGES, "unknown"))
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    stability: Stability | None = None
    diagnosis: Diagnosis | None = None
    rank: RankVerdict | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    selection: dict[str, Any] | None = None
    names_in_data: Mapping[str, str] = field(default_factory=dict)
    as_read: Readable | None = field(default=None, repr=False, compare=False)

    @cached_property
    def shown(self) -> Readable:
        """The model as people read it, with the shares of its components."""
        return self.as_read or readable(self.model)

    def to_dict(self) -> dict[str, Any]:
        """All but the model, as JSON knows it."""
        columns = {name: [getattr(r, name) for r in self.history] for name in Record._fields}
        return plain(
            {
                "created": self.created,
                "title": self.title,
                "command": self.command,
                "loss": self.loss,
                "solver": self.solver,
                "status": self.status._asdict(),
                "settings": self.settings,
                "data": self.data,
                "dispersion": self.dispersion,
                "notes": list(self.notes),
                "versions": self.versions,
                "quality": None if self.quality is None else self.quality.to_dict(),
                "stability": None if self.stability is None else self.stability.to_dict(),
                "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
                "rank": None if self.rank is None else self.rank.to_dict(),
                "names": dict(self.names),
                "selection": self.selection,
                "names_in_data": dict(self.names_in_data),
                "history": columns,
            }
        )

    @classmethod
    def of_model(cls, model: CPModel) -> RunRecord:
        """What is known of a model that was saved by `CPModel.save`: nothing but itself."""
        shown = readable(model)
        status = Status(False, "How it was fitted is not known: the model was saved by itself.")
        return cls(shown.model, math.nan, History(), status, "unknown", versions={}, created="")

    @classmethod
    def from_dict(cls, model: CPModel, given: Mapping[str, Any]) -> RunRecord:
        """Read what `to_dict` gave; raise KeyError, TypeError or ValueError if it is something
        else.
        """
        columns = given["history"]
        rows = zip(*(_numbers(name, columns[name]) for name in Record._fields), strict=True)
        quality = given["quality"]
        # Runs of earlier versions do not have these.
        stability, diagnosis = given.get("stability"), given.get("diagnosis")
        rank = given.get("rank")
        return cls(
            model,
            math.nan if given["loss"] is None else float(given["loss"]),
            History(Record(*row) for row in rows),
            Status(**given["status"]),
            str(given["solver"]),
            dict(given["settings"]),
            dict(given["data"]),
            None if quality is None else Quality.from_dict(quality),
            given["dispersion"],
            tuple(given["notes"]),
            given["command"],
            given["title"],
            dict(given["versions"]),
            str(given["created"]),
            None if stability is None else Stability.from_dict(stability),
            None if diagnosis is None else Diagnosis.from_dict(diagnosis),
            None if rank is None else RankVerdict.from_dict(rank),
            {int(number): str(name) for number, name in (given.get("names") or {}).items()},
            given.get("selection"),
            dict(given.get("names_in_data") or {}),
        )


def plain(value: Any) -> Any:
    """Convert a value to types that JSON knows: no NumPy types, no NaN, no infinity."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _numbers(name: str, column: list[Any]) -> list[Any]:
    """Return a column with NaN where JSON had to say nothing."""
    return column if name == "phase" else [math.nan if x is None else x for x in column]
