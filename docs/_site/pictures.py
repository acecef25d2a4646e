"""The picture of the start page, made from the same table and the same fit as its text."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import numpy as np

import smartcpd

COLOURS = ("#3565a8", "#c4622d", "#5b8c3a")
TITLES = ("going to work", "weekends at the lake", "nights in the old town")


def draw_components(start_page: Path, target: Path) -> None:
    """Draw hires by day, hour and place, and the components that they are made of."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X = smartcpd.from_table(_table(start_page), ["day", "hour", "place"])
    model = smartcpd.SmartCPD(rank=3, loss="poisson", random_state=0).fit(X).model_.sort()
    cells = X.tensor.to_dense().astype(float)
    figure, axes = plt.subplots(
        3, 4, figsize=(10, 4.2), layout="constrained", width_ratios=[1.25, 1, 1, 1]
    )
    for n, name in enumerate(["day", "hour", "place"]):
        others = tuple(k for k in range(3) if k != n)
        axes[n, 0].set_ylabel(name, fontsize=11)
        _profile(axes[n, 0], X.modes[n], cells.sum(axis=others), "#777777", n)
        for r in range(3):
            _profile(axes[n, r + 1], X.modes[n], model.factors[n][:, r], COLOURS[r], n)
    axes[0, 0].set_title("all hires", fontsize=11)
    for r in range(3):
        sign = "=" if r == 0 else "+"
        axes[0, r + 1].set_title(f"{sign}  {TITLES[r]}", fontsize=10, color=COLOURS[r])
    figure.savefig(target, dpi=150, facecolor="white")
    plt.close(figure)


def _table(start_page: Path):
    """Run the program of the start page that makes the table."""
    program = re.search(r"```python\n(.*?)```", start_page.read_text(encoding="utf-8"), re.S)
    names: dict = {}
    exec(program[1].rsplit("\n", 2)[0], names)  # all but its last line, which writes the file
    return names["table"]


def _profile(axes, mode, values, colour, n) -> None:
    rows = np.arange(len(mode))
    if n == 2:
        axes.barh(rows, values, color=colour)
        axes.set_yticks(rows, mode.text(), fontsize=8)
        axes.invert_yaxis()
    else:
        axes.bar(rows, values, color=colour, width=1.0 if n == 0 else 0.8)
        ticks = rows[::28] if n == 0 else rows[::6]
        words = [mode.text()[row][5:] if n == 0 else f"{row}:00" for row in ticks]
        axes.set_xticks(ticks, words, fontsize=8)
        axes.set_yticks([])
    if n == 2:
        axes.set_xticks([])
    axes.spines[["top", "right"]].set_visible(False)
