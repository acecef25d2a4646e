"""Checks for single cells that dominate the fit."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from smartcpd._data.storage.observed import stacked_rows
from smartcpd._fitting.answers.diagnosis import Finding, Severity
from smartcpd._inference.diagnosis.case import Case, listed, row_name
from smartcpd.losses import Dispersion
from smartcpd.losses.tails import normal_tails
from smartcpd.quality.result import HotCell

MOST_CELLS, LARGE_SHARE, SMALL_PART = 10, 0.1, 0.01
"""Up to so many cells with this share of the deviance dominate it, unless they are more than a
small part of all cells.
"""
NEVER = 1e-3
"""The expected number of such cells by chance alone, above which nothing is reported."""
ALONE = 0.5
"""A component is about one cell if this share of its squares lies in it."""


def dominant_cells(case: Case) -> Iterator[Finding]:
    """Cells that make up much of the loss, and cells that have a component to themselves."""
    yield from _far_off(case)
    yield from _absorbed(case)


def _far_off(case: Case) -> Iterator[Finding]:
    """A handful of cells with much of the deviance that are not there by chance."""
    t = case.tallies
    worst = t.worst_cells()[:MOST_CELLS]
    if not worst or not t.deviance > 0:
        return
    known = case.loss.knows("tails") and case.loss.dispersion is not Dispersion.UNKNOWN
    if known:
        chance = _chance(case, worst) * t.n_cells
        worst = tuple(c for c, p in zip(worst, chance, strict=True) if p < NEVER)
    share = sum(c.residual**2 for c in worst) / t.deviance
    enough, beyond = (LARGE_SHARE, ", far beyond chance") if known else (2.5 * LARGE_SHARE, "")
    if share < enough or len(worst) > SMALL_PART * t.n_read:
        return
    names = [_cell_name(case, c.index) for c in worst]
    which = f"Cell {names[0]} alone makes" if len(names) == 1 else f"Cells {listed(names)} make"
    yield Finding(
        "dominant cells",
        Severity.WARNING,
        f"{share:.0%} of the deviance is of {listed(names)}",
        f"{which} up {share:.0%} of the deviance{beyond}: the fit is about them (the "
        f"first holds {worst[0].observed:.4g}, and {worst[0].expected:.4g} was expected).",
        _advice(case),
        {"share": share, "cells": [list(case.in_whole(c.index)) for c in worst]},
    )


def _absorbed(case: Case) -> Iterator[Finding]:
    """Components that describe one cell and nothing else."""
    shares = np.ones(case.model.rank)
    peaks = []
    for A in case.factors:
        squares = A * A
        peaks.append(squares.argmax(axis=0))
        shares *= squares.max(axis=0) / np.maximum(squares.sum(axis=0), 1e-300)
    alone = np.flatnonzero(shares > ALONE)
    if not alone.size or SMALL_PART * case.problem.storage.n_cells < MOST_CELLS:
        return
    index = [rows[alone] for rows in peaks]
    held = np.empty(alone.size)
    case.storage.read_cells(stacked_rows(case.problem.shape, index), held)
    cells = [tuple(int(i) for i in cell) for cell in zip(*index, strict=True)]
    names = [
        f"{case.component(r)} (cell {_cell_name(case, cell)}, which holds {x:,.6g})"
        for r, cell, x in zip(alone.tolist(), cells, held, strict=True)
    ]
    one = len(names) == 1
    which = f"Component {names[0]} is" if one else f"Components {listed(names)} are"
    yield Finding(
        "dominant cells",
        Severity.WARNING,
        f"{len(names)} component{'s' * (not one)} about a single cell: {listed(names)}",
        f"{which} about a single cell{'' if one else ' each'}, so large that it took a component "
        "to itself.",
        _advice(case),
        {"components": alone.tolist(), "cells": [list(case.in_whole(cell)) for cell in cells]},
    )


def _advice(case: Case) -> str:
    robust = case.loss.tolerant
    other = "" if robust is None else f", or use a loss that minds them less, such as '{robust}'"
    return f"Check these values; if they are wrong, mark them as missing{other}."


def _cell_name(case: Case, index: tuple[int, ...]) -> str:
    modes = case.model.named_modes
    return "(" + ", ".join(row_name(m, i) for m, i in zip(modes, index, strict=True)) + ")"


def _chance(case: Case, cells: tuple[HotCell, ...]) -> np.ndarray:
    """Return how likely values as far out as these are, each by itself."""
    t = case.tallies
    if case.loss.dispersion is not Dispersion.OPEN:
        index = tuple(np.array(i) for i in zip(*(c.index for c in cells), strict=True))
        x = np.array([c.observed for c in cells])
        return case.loss.tail_probability(x, case.model.values(index))
    # The noise is estimated without the cells in question, which would make themselves look usual;
    # roots of deviances are nearly normal.
    residuals = np.array([abs(c.residual) for c in cells])
    degrees = max(t.n_cells - case.problem.freedom - len(cells), 1.0)
    noise = max((t.deviance - float(residuals @ residuals)) / degrees, 1e-300)
    return 2.0 * normal_tails(residuals, np.zeros(1), math.sqrt(noise)).above
