"""Names of modes and labels of their rows.

The mathematics sees arrays only: labels are taken off where data comes in, and put back on the
model that goes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd._data.storage.base import Storage
from smartcpd.errors import InvalidDataError, InvalidParameterError

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Kind(StrEnum):
    """The kinds of rows that a mode can have, which decide which picture suits them."""

    CATEGORY = "category"
    """Names without an order."""
    TIME = "time"
    """Points or periods in order of time."""
    CYCLE = "cycle"
    """Parts of something that repeats: hours of the day, days of the week."""
    NUMBER = "number"
    """Numbers or ranges of numbers, in order."""

    @property
    def ordered(self) -> bool:
        """Whether the rows have an order."""
        return self is not Kind.CATEGORY


@dataclass(frozen=True, eq=False)
class Mode:
    """A mode has a name, and a label for each of its rows.

    Parameters
    ----------
    name : str
        The name.
    labels : sequence
        Text, numbers or dates, one a row; kept as a read-only array of one of ``str``,
        ``datetime64``, whole or real numbers.
    kind : Kind or str, optional
        By default "time" for dates, "number" for numbers and "category" for text.

    Examples
    --------
    >>> from smartcpd import Mode
    >>> mode = Mode("city", ["Rome", "Oslo"])
    >>> len(mode), str(mode.kind)
    (2, 'category')
    """

    name: str
    labels: np.ndarray
    kind: Kind

    def __init__(self, name: str, labels: Any, kind: Kind | str | None = None) -> None:
        found = _label_array(name, labels)
        try:
            chosen = _usual_kind(found) if kind is None else Kind(kind)
        except ValueError:
            raise InvalidParameterError(
                f"Mode {name!r} has kind {kind!r}, which is none of {', '.join(Kind)}."
            ) from None
        for field, value in (("name", str(name)), ("labels", found), ("kind", chosen)):
            object.__setattr__(self, field, value)

    @classmethod
    def numbered(cls, name: str, size: int) -> Mode:
        """Return a mode whose rows have no labels but their numbers."""
        return cls(name, np.arange(size))

    def __len__(self) -> int:
        return len(self.labels)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mode)
            and (self.name, self.kind) == (other.name, other.kind)
            and np.array_equal(self.labels, other.labels)
        )

    def __repr__(self) -> str:
        return f"Mode({self.name!r}, {len(self)} labels, {self.kind})"

    @cached_property
    def _unit(self) -> str:
        """The longest unit of time that all dates are multiples of; a single one is a day."""
        labels = self.labels
        units = ("D", "m", "s") if labels.size < 2 else ("Y", "M", "D", "m", "s")
        exact = (u for u in units if (labels.astype(f"datetime64[{u}]") == labels).all())
        return next(exact, "us")

    @property
    def _counts_months(self) -> bool:
        """Whether the rows are months of the year by their numbers."""
        return (
            self.kind is Kind.CYCLE
            and self.labels.dtype.kind in "iu"
            and "month" in self.name.lower()
            and bool(((self.labels >= 1) & (self.labels <= 12)).all())
        )

    def text(self, rows: Any = None) -> list[str]:
        """Return the labels as a person would write them: all, or those of some rows.

        Which parts of a date are left out depends on all labels.
        """
        labels = self.labels if rows is None else self.labels[np.asarray(rows)]
        if labels.dtype.kind == "M":
            return _dates(labels, self._unit)
        if labels.dtype.kind == "f":
            return [f"{value:.6g}" for value in labels]
        if self._counts_months:
            return [MONTHS[number - 1] for number in labels.tolist()]
        return [str(label) for label in labels.tolist()]


@dataclass(frozen=True)
class LabelledTensor:
    """A tensor whose modes have names and labels; it goes wherever a tensor goes.

    Parameters
    ----------
    tensor : array or SparseTensor
        The data.
    modes : sequence of Mode
        One for each mode of the data, with a label for every row.
    notes : tuple of str
        What was left out or decided where the tensor was made.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import LabelledTensor, Mode
    >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2023, 2024, 2025])]
    >>> LabelledTensor(np.ones((2, 3)), modes).shape
    (2, 3)
    """

    tensor: Storage | np.ndarray
    modes: tuple[Mode, ...]
    notes: tuple[str, ...] = ()
    """What was left out or decided where the tensor was made."""

    def __post_init__(self) -> None:
        checked_modes(self.modes, self.tensor.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each mode."""
        return tuple(self.tensor.shape)

    def __repr__(self) -> str:
        names = " x ".join(f"{mode.name} {len(mode)}" for mode in self.modes)
        return f"LabelledTensor({names}; {self.tensor!r})"


def taken_off(X: Any) -> tuple[Any, tuple[Mode, ...] | None]:
    """Return the tensor alone, and the labels of its modes if it has any."""
    if isinstance(X, LabelledTensor):
        return X.tensor, X.modes
    if type(X).__module__.startswith("xarray.") and hasattr(X, "coords"):
        return _from_xarray(X)
    if is_frame(X):
        return _from_frame(X)
    if type(X).__module__.startswith("pyttb.") and isinstance(getattr(X, "data", 0), np.ndarray):
        return X.data, None
    return X, None


def is_frame(X: Any) -> bool:
    """Whether X is a table of pandas, polars or Dask: a matrix with names."""
    package = type(X).__module__.split(".")[0]
    return package in ("pandas", "polars", "dask", "dask_expr") and hasattr(X, "columns")


def _from_frame(X: Any) -> tuple[np.ndarray, tuple[Mode, ...] | None]:
    """Return the numbers of a table, its index and its columns."""
    X = X.compute() if hasattr(X, "compute") else X
    values = X.to_numpy()
    if values.dtype == object and any(isinstance(value, str) for value in values.flat):
        raise InvalidDataError(
            "X is a table with text in it, and a table is read as a matrix of numbers. If its rows "
            "are events or measurements, make a tensor of them first: "
            "smartcpd.from_table(X, modes=[...])."
        )
    if 0 in X.shape:
        return values, None
    index = getattr(X, "index", np.arange(len(X)))
    given = (getattr(index, "name", None), getattr(X.columns, "name", None))
    names = given if given[0] != given[1] else (None, None)
    rows = Mode(str(names[0] or "row"), index)
    return values, (rows, Mode(str(names[1] or "column"), X.columns))


def checked_modes(modes: Iterable[Mode], shape: Sequence[int]) -> tuple[Mode, ...]:
    """Return the modes, or raise an error unless there is a label for every row of the tensor."""
    given = tuple(modes)
    if len(given) != len(shape):
        raise InvalidDataError(
            f"A tensor of order {len(shape)} needs {len(shape)} named modes; got {len(given)}."
        )
    for mode, size in zip(given, shape, strict=True):
        if len(mode) != size:
            raise InvalidDataError(
                f"Mode {mode.name!r} has {len(mode)} labels for {size} rows; give one for each."
            )
    names = [mode.name for mode in given]
    if len(set(names)) < len(names):
        raise InvalidDataError(
            f"Modes need different names; got {', '.join(map(repr, names))}. Rename one."
        )
    return given


def _from_xarray(X: Any) -> tuple[Any, tuple[Mode, ...]]:
    if not hasattr(X, "dims") or hasattr(X, "data_vars"):
        raise InvalidDataError(
            "X is an xarray Dataset, which holds several arrays; pass one of them, such as "
            f"X[{next(iter(X.data_vars), 'name')!r}]."
        )
    modes = []
    for dim, size in zip(X.dims, X.shape, strict=True):
        labels = X.coords[dim].values if dim in X.coords else np.arange(size)
        modes.append(Mode(str(dim), labels))
    # xarray does not say in public whether values have been read. Those that have not stay where
    # they are, for a reader of blocks.
    unread = X.chunks is None and not getattr(X.variable, "_in_memory", True)
    return X.variable if unread else X.data, tuple(modes)


def _label_array(name: str, labels: Any) -> np.ndarray:
    found = np.asarray(labels)
    if found.ndim != 1:
        raise InvalidDataError(
            f"Labels of mode {name!r} must be a list, one a row; got shape {found.shape}."
        )
    if found.dtype.kind not in "iufM":
        found = np.array([str(label) for label in found.tolist()], dtype=str)
    elif found.dtype.kind == "M":
        found = found.astype("datetime64[us]")
    found = found.copy()
    found.flags.writeable = False
    return found


def _usual_kind(labels: np.ndarray) -> Kind:
    return {"M": Kind.TIME, "U": Kind.CATEGORY}.get(labels.dtype.kind, Kind.NUMBER)


def _dates(labels: np.ndarray, unit: str) -> list[str]:
    """Write dates without the parts that are zero in all of them; months by their names."""
    texts = [str(d).replace("T", " ") for d in labels.astype(f"datetime64[{unit}]")]
    if unit == "M":
        return [f"{MONTHS[int(text[5:7]) - 1]} {text[:4]}" for text in texts]
    return texts
