"""How the loadings of a mode go with what else is known of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._fitting.answers.intervals import Intervals
from smartcpd._fitting.answers.relations import GroupMean, Relation, Relations
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.ranking import mode_number
from smartcpd.errors import InvalidDataError, InvalidParameterError

FEWEST = 3
"""The least number of rows that a relation can be judged by."""


def relate(
    model: CPModel,
    mode: int | str,
    table: Any,
    *,
    on: str | None = None,
    intervals: Intervals | None = None,
) -> Relations:
    """Compare loadings with the columns of a table; see `CPModel.relate`."""
    place = mode_number(model, mode)
    normalised = model.normalize()
    if intervals is not None and not _is_about(intervals, normalised):
        raise InvalidParameterError(
            f"intervals are about {intervals.model!r}, not about this {model!r}. Give what "
            "model.intervals(X) returned."
        )
    named = normalised.named_modes[place]
    columns, unknown = _aligned(named, table, on)
    loadings = normalised.factors[place]
    found = []
    for name, values in columns.items():
        for r in range(model.rank):
            found.append(Relation(r + 1, name, *_related(loadings[:, r], values)))
    groups = [
        mean
        for name, values in columns.items()
        if values.dtype.kind == "U"
        for mean in _group_means(name, values, loadings, intervals, place)
    ]
    return Relations(normalised, place, columns, _corrected(found), tuple(groups), unknown)


def _is_about(intervals: Intervals, model: CPModel) -> bool:
    own = intervals.model
    return own.shape == model.shape and all(
        A.shape == B.shape and np.allclose(A, B)
        for A, B in zip(own.factors, model.factors, strict=True)
    )


def _aligned(
    mode: Mode, table: Any, on: str | None
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The columns of a table in the order of the mode's rows, and the rows that it lacks."""
    given = _columns(table)
    key = on if on is not None else mode.name if mode.name in given else None
    if key is not None and key not in given:
        raise InvalidParameterError(
            f"The table has no column {key!r}; it has {', '.join(map(repr, given))}."
        )
    names = given.pop(key) if key is not None else _index(table, mode)
    if not given:
        raise InvalidParameterError("The table has no column to compare loadings with.")
    length = len(next(iter(given.values())))
    if names is None and length != len(mode):
        raise InvalidDataError(
            f"The table has {length} rows and mode {mode.name!r} has {len(mode)}, and no column "
            f"names them. Add a column {mode.name!r} with their labels, or say which one by on=..."
        )
    places = np.arange(length) if names is None else _places(mode, names)
    known = places >= 0
    unknown = tuple(mode.text(np.flatnonzero(~known))) if not known.all() else ()
    if names is not None and not known.any():
        raise InvalidDataError(
            f"No row of mode {mode.name!r} is in the table: its labels are such as "
            f"{mode.text([0])[0]!r}, the table's such as {str(names[0])!r}."
        )
    return {name: _known(values, places) for name, values in given.items()}, unknown


def _columns(table: Any) -> dict[str, np.ndarray]:
    if not isinstance(table, Mapping) and not hasattr(table, "columns"):
        raise InvalidParameterError(
            f"table must be a data frame or a dict of columns; got {type(table).__name__}."
        )
    # Arrow has columns and their names; pandas and Polars have columns that are their names.
    names = table if isinstance(table, Mapping) else getattr(table, "column_names", table.columns)
    columns = {str(name): np.asarray(table[name]) for name in names}
    lengths = {values.shape for values in columns.values()}
    if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
        raise InvalidDataError("The columns of the table must be of one length.")
    return columns


def _index(table: Any, mode: Mode) -> np.ndarray | None:
    """The index of a pandas frame, if it names rows of the mode."""
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    names = np.asarray(index)
    counted = np.array_equal(names, np.arange(len(names)))
    return None if counted and len(names) == len(mode) else names


def _places(mode: Mode, names: np.ndarray) -> np.ndarray:
    """For each row of the mode its row in the table, -1 where there is none."""
    labels = Mode(mode.name, names).labels
    own = mode.labels
    if labels.dtype.kind != own.dtype.kind:
        labels, own = labels.astype(str), own.astype(str)
    where = {label: i for i, label in enumerate(labels.tolist())}
    if len(where) < len(labels):
        raise InvalidDataError(
            f"The table names {len(labels) - len(where)} rows of mode {mode.name!r} more than "
            "once. Give one row for each."
        )
    return np.array([where.get(label, -1) for label in own.tolist()], dtype=np.int64)


def _known(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A column in the order of the mode's rows: numbers with NaN, or text with blanks."""
    if values.dtype.kind in "iuf":
        return np.where(places >= 0, values.astype(np.float64)[places], np.nan)
    text = np.array(["" if _is_missing(value) else str(value) for value in values.tolist()])
    return np.where(places >= 0, text[places], "")


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _related(loadings: np.ndarray, values: np.ndarray) -> tuple[str, float, float, float, int]:
    """The kind of relation, its strength, p, p again in place of q, and the number of rows."""
    from scipy import stats  # slow to import, and needed here only

    numbers = values.dtype.kind == "f"
    known = np.isfinite(values) if numbers else values != ""
    x, y = loadings[known], values[known]
    kind, n = ("number" if numbers else "group"), int(known.sum())
    if n < FEWEST or len(np.unique(y)) < 2 or np.ptp(x) == 0:
        return kind, float("nan"), 1.0, 1.0, n
    if numbers:
        result = stats.spearmanr(x, y)
        return kind, float(result.statistic), float(result.pvalue), float(result.pvalue), n
    groups = [x[y == group] for group in np.unique(y)]
    test = stats.kruskal(*groups)
    return kind, float(test.statistic) / (n - 1), float(test.pvalue), float(test.pvalue), n


def _corrected(rows: list[Relation]) -> tuple[Relation, ...]:
    """The same relations, q corrected for their number."""
    from scipy.stats import false_discovery_control

    q = false_discovery_control([row.p for row in rows])
    return tuple(row._replace(q=float(value)) for row, value in zip(rows, q, strict=True))


def _group_means(
    name: str,
    values: np.ndarray,
    loadings: np.ndarray,
    intervals: Intervals | None,
    place: int,
) -> Iterator[GroupMean]:
    below = above = np.full_like(loadings, np.nan)
    if intervals is not None:
        below = loadings - intervals.lower[place]
        above = intervals.upper[place] - loadings
    for group in np.unique(values[values != ""]):
        own = values == group
        n = int(own.sum())
        for r in range(loadings.shape[1]):
            mean = float(loadings[own, r].mean())
            # Loadings of different rows are taken as if their errors were independent.
            low, high = (float(np.sqrt(np.sum(side[own, r] ** 2))) / n for side in (below, above))
            yield GroupMean(r + 1, name, str(group), n, mean, mean - low, mean + high)
