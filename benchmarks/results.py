"""What a case yields: rows of tables, figures, verdicts, who was measured, and remarks.

Every result is printed while the case runs, kept as JSON, and set in RESULTS.md from there.
"""

from __future__ import annotations

import importlib
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.harness import Timing

Json = dict[str, Any]


@dataclass(frozen=True)
class Spread:
    """A median and between what the measurements lie."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def ratio(cls, slow: Timing, fast: Timing) -> Spread:
        """The ratio of medians, with the range of the ratios of paired runs."""
        pairs = [a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]
        return cls(slow.median / fast.median, min(pairs), max(pairs))


Cell = str | float | int | bool | None | Spread


@dataclass(frozen=True)
class Row:
    """A row of the table of this name; rows of a table have the same columns."""

    table: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Verdict:
    """Whether a figure holds."""

    label: str
    value: float
    bound: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass(frozen=True)
class Method:
    """Who was measured: a package with the settings and threads it ran with."""

    package: str
    settings: str
    threads: int | str = 1
    version: str = ""

    def __post_init__(self) -> None:
        if not self.version:
            object.__setattr__(self, "version", installed(self.package))


@dataclass(frozen=True)
class Bars:
    """A bar for every method in every group, labelled with its value."""

    name: str
    title: str
    unit: str
    groups: Mapping[str, Mapping[str, float | Spread]]


@dataclass(frozen=True)
class Lines:
    """A line for every method, labelled at its end; axes are logarithmic if ``log`` has them."""

    name: str
    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    log: str = "x"


@dataclass(frozen=True)
class Remark:
    text: str


Result = Row | Verdict | Method | Bars | Lines | Remark
KINDS = {kind.__name__: kind for kind in (Row, Verdict, Method, Bars, Lines, Remark)}


@dataclass
class Record:
    """A case as it is stored: what was measured, where and when."""

    case: str
    title: str
    about: str
    machine: str
    date: str
    results: list[Json] = field(default_factory=list)

    def of_kind(self, kind: type) -> list[Json]:
        return [r for r in self.results if r["kind"] == kind.__name__]


def to_json(result: Result) -> Json:
    """Plain numbers, text and lists; infinity and NaN as text, which JSON lacks."""
    return {"kind": type(result).__name__, **_plain(asdict(result))}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "never" if value > 0 else "-"
    return value


def shown(cell: Any) -> str:
    """A cell of a stored row as text."""
    if isinstance(cell, dict) and cell["low"] == cell["high"]:
        return number(cell["median"])
    if isinstance(cell, dict):
        low, high = number(cell["low"]), number(cell["high"])
        return f"{number(cell['median'])} ({low}-{high})"
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return number(cell)


def number(value: Any) -> str:
    """At most four digits, without an exponent where it can be avoided."""
    if not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}" if abs(value) >= 1e6 else str(int(value))
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def as_text(result: Json) -> str:
    """One line to print while a case runs; figures have none."""
    if result["kind"] == "Row":
        cells = ", ".join(f"{name} {shown(cell)}" for name, cell in result["cells"].items())
        return f"{result['table']}: {cells}"
    if result["kind"] == "Verdict":
        held = Verdict(**{k: v for k, v in result.items() if k != "kind"})
        sign = "at most" if held.at_most else "at least"
        mark = "holds " if is_held(result) else "FAILS "
        return f"{mark} {held.label}: {shown(held.value)} ({sign} {held.bound:g})"
    if result["kind"] == "Method":
        return f"{result['package']} {result['version']}, {described(result)}"
    return str(result.get("text", ""))


def is_held(result: Json) -> bool:
    """Of a stored verdict; a value that is not a number holds only where more is better."""
    if not isinstance(result["value"], int | float):
        return result["value"] == "never" and not result["at_most"]
    return Verdict(**{k: v for k, v in result.items() if k != "kind"}).holds


def described(method: Json) -> str:
    threads = method["threads"]
    return f"{method['settings']}; {threads} thread{'' if str(threads) == '1' else 's'}"


def installed(package: str) -> str:
    """The version of a package; our own also where it runs from its sources."""
    try:
        return version(package)
    except PackageNotFoundError:
        return str(getattr(importlib.import_module(package), "__version__", "of its sources"))


def blas_threads() -> int:
    """What NumPy, and with it pyttb and TensorLy, may use."""
    from threadpoolctl import threadpool_info

    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(blas, default=os.cpu_count() or 1)
