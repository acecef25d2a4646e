"""Tables, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Table:
    """A titled table of text; ``note`` stands below it."""

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        return f"### {self.title}\n\n{self.rows_markdown()}"

    def rows_markdown(self) -> str:
        """Return the table without its title."""
        lines = [_line(self.header), _line("---" for _ in self.header)]
        lines += [_line(row) for row in self.rows]
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def number(value: float, digits: int = 2) -> str:
    """Write a number as a table shows it; a dash where there is none."""
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "never"
    if value == 0 or 1e-2 <= abs(value) < 1e4:
        return f"{value:.{digits}g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def summaries(
    values: np.ndarray, functions: Iterable[Callable[[np.ndarray], float]], digits: int = 2
) -> list[str]:
    """Write what functions, such as the mean, make of all values; a dash where there are none."""
    return [number(f(values), digits) if values.size else "-" for f in functions]


def amount(values: np.ndarray, unit: str = "") -> str:
    """Write the median of amounts of which some may be infinite, and how many are not."""
    if not values.size:
        return "-"
    middle = float(np.median(values))
    shown = f"{number(middle)}{unit}" if np.isfinite(middle) else number(middle)
    reached = int(np.isfinite(values).sum())
    return shown if reached == values.size else f"{shown} ({reached} of {values.size})"


def seconds(values: np.ndarray) -> str:
    return amount(values, " s")
