"""Components as text for the terminal: their shares, and for each mode what matters of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from smartcpd._app.cli.console import printable
from smartcpd._data.labels import Kind, Mode
from smartcpd._fitting.consensus import Stability
from smartcpd._fitting.ranking import largest
from smartcpd._fitting.shares import Readable
from smartcpd.report.naming import named

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*#%"
WIDEST = 48
LABEL = 32
MOST_NAMES = 200
FEW_NAMES = 12
"""Up to so many whole numbers are listed even if they follow each other."""
YEARS = (1800, 2200)
"""Numbers from the first to below the second that follow each other are taken for years."""
NOTHING = 1e-6
"""The part of the largest entry, signs aside, up to which another one is rounding."""
TOO_LITTLE = 1e-3
"""The share of a row below which it is not worth a mention after others."""


def print_components(
    console: Console,
    shown: Readable,
    k: int = 5,
    stability: Stability | None = None,
    names: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Print a paragraph for each component, under the name that a user gave it by its number."""
    modes = named(shown.model.named_modes)
    width = min(max(len(mode.name) for mode in modes), 20)
    blocks = BLOCKS if (console.encoding or "").lower().startswith("utf") else PLAIN
    for r, share in enumerate(shown.shares):
        sure = "" if stability is None else f", {stability.words(int(shown.order[r]))}"
        size = f"  {share:.1%} of the {shown.share_of}"
        title = f"  {printable(names[r + 1])}" if r + 1 in names else ""
        console.print(Text.assemble((f"{r + 1}{title}", "bold"), size, sure))
        for n, mode in enumerate(modes):
            name = printable(mode.name)[:20].ljust(width)
            line = _line(mode, shown.model.factors[n][:, r], shown.signed, k, blocks)
            console.print(Text.assemble("   ", (name, "cyan"), "  ", line))


def _line(mode: Mode, column: np.ndarray, signed: bool, k: int, blocks: str) -> str:
    is_named = (
        mode.kind is Kind.NUMBER
        and mode.labels.dtype.kind in "iu"
        and len(mode) <= MOST_NAMES
        and _may_be_names(mode.labels)
    )
    if mode.kind.ordered and not is_named and len(mode) > 2 and not signed:
        peak = int(np.argmax(column))
        end = "" if mode.kind is Kind.CYCLE else f", {_label(mode, 0)} to {_label(mode, -1)}"
        return f"{_sparkline(column, blocks)}  most at {_label(mode, peak)}{end}"
    largest = np.argsort(-np.abs(column), kind="stable")[:k]
    if signed:
        least = NOTHING * np.abs(column).max()
        worth = [i for i in largest if abs(column[i]) > least]
        return ", ".join(f"{_label(mode, i)} {column[i]:+.2g}" for i in worth)
    worth = [i for i in largest if column[i] >= TOO_LITTLE] or list(largest[:1])
    return ", ".join(f"{_label(mode, i)} {column[i]:{_digits(column[i])}}" for i in worth)


def _may_be_names(numbers: np.ndarray) -> bool:
    """Tell whether whole numbers may be names, of places or sensors say.

    Few are as often names as amounts, and so are numbers of which some are left out; years in a row
    are neither.
    """
    in_a_row = not (np.diff(numbers) != 1).any()
    years = YEARS[0] <= int(numbers.min()) and int(numbers.max()) < YEARS[1]
    return not in_a_row or (len(numbers) <= FEW_NAMES and not years)


def _digits(share: float) -> str:
    return ".0%" if share >= 0.01 else ".2%"


def _label(mode: Mode, row: int) -> str:
    text = mode.text([row])[0]
    text = printable(" ".join(text.split()))
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


def _sparkline(values: np.ndarray, blocks: str) -> str:
    """Draw values as a row of characters; neighbours are averaged where there are many."""
    parts = np.array_split(values, min(values.size, WIDEST))
    heights = np.array([part.mean() for part in parts])
    top = heights.max()
    levels = np.zeros(heights.size, int)
    if top > 0:
        levels = np.ceil(heights / top * (len(blocks) - 1) - 1e-9).astype(int)
    return "".join(blocks[level] for level in levels)


def described(
    shown: Readable, k: int = 10, stability: Stability | None = None
) -> list[dict[str, Any]]:
    """Return the components as JSON values, for programs."""

    def sure(column: int) -> dict[str, Any]:
        if stability is None:
            return {}
        return {"stability": stability.values[column], "found": stability.found[column]}

    return [
        {
            "component": r + 1,
            "share": float(share),
            **sure(int(shown.order[r])),
            "top": {
                mode.name: [
                    {"label": label, "value": value}
                    for label, value in largest(mode, shown.model.factors[n][:, r], k)
                ]
                for n, mode in enumerate(shown.model.named_modes)
            },
        }
        for r, share in enumerate(shown.shares)
    ]
