"""Remarks of a fit about missing cells, and about rows without observed cells."""

from __future__ import annotations

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._problem.bounds import are_bounds, bounds
from smartcpd._problem.problem import Problem

NAMED = 5
"""How many rows of a mode are named; the others are only counted."""


def without_unobserved_rows(
    problem: Problem, factors: list[np.ndarray]
) -> tuple[list[np.ndarray], str]:
    """Return the factors with 0 (or the nearest bound) in unobserved rows, and a remark about
    missing cells.

    Constraints on whole columns decide about all rows together; there the rows stay.
    """
    storage = problem.storage
    remarks = []
    if storage.n_missing:
        share = 100 * storage.n_missing / storage.n_cells
        count = "1 cell" if storage.n_missing == 1 else f"{storage.n_missing:,} cells"
        verb = "is" if storage.n_missing == 1 else "are"
        remarks.append(f"{count} ({share:.2g} %) {verb} missing.")
    empty = problem.shared.rows_in_all(storage.unobserved_rows())
    if any(rows.size for rows in empty):
        clears = are_bounds(problem)
        if clears:
            low, high = (parts(b, problem.shape) for b in bounds(problem))
            factors = [A.copy() for A in factors]
            for mode, rows in enumerate(empty):
                factors[mode][rows] = np.clip(0.0, low[mode][rows], high[mode][rows])
        names = "; ".join(row_names(mode, rows) for mode, rows in enumerate(empty) if rows.size)
        consequence = "the model is 0 there" if clears else "the model means nothing there"
        remarks.append(f"No cell was observed in {names}: {consequence}.")
    return factors, " ".join(remarks)


def row_names(mode: int, rows: np.ndarray) -> str:
    """Name some rows of a mode."""
    shown = ", ".join(str(int(row)) for row in rows[:NAMED])
    more = f" and {rows.size - NAMED:,} more" if rows.size > NAMED else ""
    return f"row{'s' * (rows.size > 1)} {shown}{more} of mode {mode}"
