"""The last step of a fit, which makes the rows of its first mode exact for the other factors.

A fit ends where what is left to gain is small next to noise, in all factors together; a row may
still be a per cent from its own minimum there. After this, `transform` of the data that was fitted
returns the rows of the fit.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from smartcpd._methods.base import Result
from smartcpd._methods.row_newton import Rule, solve_rows
from smartcpd._objectives.slices.sums import entries_a_pass, slices_of
from smartcpd._problem.history import History
from smartcpd._problem.problem import Problem

SMALL_STEP = 1.5e-3
"""The size of the last step, relative to a column. Newton's method leaves about its square."""
MODE = 0
FEWEST = 5
"""The least number of passes of a fit; one that needed fewer is not held up by more at its end."""


def with_settled_rows(problem: Problem, result: Result, n_threads: int) -> Result | None:
    """Return the result with the rows of its first mode at their minimum, or None where that cannot
    be had or would take long next to the fit; call it within `threads.limited_to`.
    """
    rule = Rule(problem.constraints[MODE])
    if not result.history or not result.status.converged or rule.bounds is None:
        return None
    n_entries = entries_a_pass(problem.storage, problem.loss, result.factors)
    last = result.history[-1]
    if last.entries < FEWEST * n_entries:
        return None
    began = time.perf_counter()
    slices = slices_of(problem.storage, problem.loss, result.factors, MODE, n_threads)
    rows = solve_rows(slices, result.factors[MODE].astype(np.float64), rule, SMALL_STEP)
    record = last._replace(
        time=last.time + time.perf_counter() - began,
        epoch=last.epoch + 1,
        entries=last.entries + int(n_entries),
        loss=float(rows.value.sum()) / problem.storage.n_observed,
        phase="rows",
    )
    factors = [rows.A.astype(result.factors[MODE].dtype), *result.factors[1:]]
    # Backgrounds of sparse data may leave out a little that is the same before and after.
    loss = record.loss if slices.exact else None
    return replace(result, factors=factors, history=History([*result.history, record]), loss=loss)
