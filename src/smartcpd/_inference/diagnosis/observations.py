"""Checks for rows with too few observations for the numbers that the model has for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._fitting.answers.diagnosis import Finding, Severity
from smartcpd._inference.diagnosis.case import NAMED, Case, listed, row_name
from smartcpd._inference.wording import counted
from smartcpd.losses import Data


def few_observations(case: Case) -> Iterator[Finding]:
    """Rows with fewer observed cells than components; for counts and events, fewer events."""
    rank = case.model.rank
    cells = observed_cells(case.problem.storage)
    yield from _finding(case, cells, "observed cells", Severity.WARNING)
    if case.loss.data is Data.BINARY or case.tallies.counts is not None:
        events = event_counts(case.problem.storage)
        # A row in which nothing happened is 0, and known to be; one without cells is named above.
        few = [
            np.where((e > 0) & (c >= rank), e, np.inf) for e, c in zip(events, cells, strict=True)
        ]
        yield from _finding(case, few, "events", Severity.NOTE)


def _finding(
    case: Case, amounts: list[np.ndarray], what: str, severity: Severity
) -> Iterator[Finding]:
    rank = case.model.rank
    parts, figures = [], {}
    for mode, amount in zip(case.model.named_modes, amounts, strict=True):
        rows = np.flatnonzero(amount < rank)
        if not rows.size:
            continue
        rows = rows[np.argsort(amount[rows], kind="stable")]
        names = listed([row_name(mode, int(row)) for row in rows[: NAMED + 1]], rows.size)
        parts.append(f"{rows.size:,} of {len(mode):,} rows of {mode.name} ({names})")
        figures[mode.name] = int(rows.size)
    if not parts:
        return
    which = "; ".join(parts)
    consequence = "guesses" if severity is Severity.WARNING else "rough"
    yield Finding(
        f"too few {what}",
        severity,
        f"{_rows_have(sum(figures.values()))} fewer {what} than there are components",
        f"{which} {_have(sum(figures.values()))} fewer {what} than the {rank} components: their "
        f"loadings are {consequence}.",
        "Gather such rows into one, leave them out, or use a lower rank.",
        figures,
    )


def _rows_have(count: int) -> str:
    return f"{counted(count, 'row')} {_have(count)}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


@singledispatch
def observed_cells(storage: Storage) -> list[np.ndarray]:
    """Count the observed cells of each row, mode by mode."""
    raise TypeError(f"{type(storage).__name__} is no storage whose cells can be counted.")


@observed_cells.register
def _(storage: SparseTensor) -> list[np.ndarray]:
    if storage.absent == "unobserved":
        return _counts(storage.indices, storage.shape)
    missing = _counts(storage.missing, storage.shape)
    return [whole - unseen for whole, unseen in zip(_all_cells(storage), missing, strict=True)]


@observed_cells.register
def _(storage: Dense) -> list[np.ndarray]:
    return _row_sums(storage, lambda slab, seen: seen) if storage.weighted else _all_cells(storage)


@singledispatch
def event_counts(storage: Storage) -> list[np.ndarray]:
    """Sum the observed counts of each row, mode by mode."""
    raise TypeError(f"{type(storage).__name__} is no storage whose events can be counted.")


@event_counts.register
def _(storage: SparseTensor) -> list[np.ndarray]:
    return _counts(storage.indices, storage.shape, storage.values.astype(np.float64))


@event_counts.register
def _(storage: Dense) -> list[np.ndarray]:
    return _row_sums(storage, lambda slab, seen: slab if seen is None else np.where(seen, slab, 0))


def _all_cells(storage: Storage) -> list[np.ndarray]:
    return [np.full(size, float(storage.n_cells // size)) for size in storage.shape]


def _counts(
    columns: Sequence[np.ndarray], shape: tuple[int, ...], weights: np.ndarray | None = None
) -> list[np.ndarray]:
    """Count how many of some cells each row has, or add up how much they weigh."""
    return [
        np.bincount(column.astype(np.intp), weights, minlength=size).astype(float)
        for column, size in zip(columns, shape, strict=True)
    ]


def _row_sums(storage: Dense, part: Callable[[Any, Any], np.ndarray]) -> list[np.ndarray]:
    """Sum over the slices of each mode, some slices of the first mode at a time."""
    sums = [np.zeros(size) for size in storage.shape]
    for start, slab, seen in storage.observed_slabs():
        values = part(slab, seen)
        for mode, total in enumerate(sums):
            others = tuple(k for k in range(slab.ndim) if k != mode)
            where = slice(start, start + len(slab)) if mode == 0 else slice(None)
            total[where] += values.sum(axis=others, dtype=np.float64)
    return sums
