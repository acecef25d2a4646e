"""Names of modes and labels of their rows.

The mathematics sees arrays only: labels are taken off where data comes in, and put back on the
model that goes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

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
        """Return a mode whose rows have no labels but their numbers.

        Parameters
        ----------
        name : str
            The name of the mode.
        size : int
            How many rows it has.

        Returns
        -------
        Mode

        Examples
        --------
        >>> from smartcpd import Mode
        >>> Mode.numbered("user", 3).labels
        array([0, 1, 2])
        """
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

    def rows(self, labels: Any) -> np.ndarray:
        """Return the places of labels, counted from 0.

        Parameters
        ----------
        labels : label, list of labels, or slice
            As they are in ``labels``, or as `text` writes them. A slice goes from one label to
            another, both included; dates and numbers that are no labels bound it as well.

        Returns
        -------
        ndarray
            In the shape of what was given; of a slice, a list.

        Examples
        --------
        >>> from smartcpd import Mode
        >>> mode = Mode("day", ["2024-01-31", "2024-02-01", "2024-02-02"], "time")
        >>> mode.rows(["2024-02-02", "2024-01-31"]), mode.rows(slice("2024-02-01", None))
        (array([2, 0]), array([1, 2]))
        """
        if isinstance(labels, slice):
            return self._between(labels.start, labels.stop)
        given = np.asarray(labels)
        if given.dtype.kind == "M":  # nanoseconds would become numbers
            given = given.astype("datetime64[us]")
        places = [self._place(label) for label in given.ravel().tolist()]
        return np.array(places, np.intp).reshape(given.shape)

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The first row with each label, by its value and by its text."""
        found: dict[Any, int] = {}
        for names in (self.labels.tolist(), self.text()):
            for place, name in enumerate(names):
                found.setdefault(name, place)
        return found

    def _place(self, label: Any) -> int:
        found = self._places.get(label)
        if found is None and self.labels.dtype.kind == "M":
            with suppress(ValueError, TypeError):
                found = self._places.get(np.datetime64(label, "us").item())
        if found is None:
            found = self._places.get(str(label))
        if found is None:
            some = ", ".join(self.text(np.arange(min(3, len(self)))))
            raise InvalidParameterError(
                f"Mode {self.name!r} has no row {label!r}; its rows are {some}"
                f"{', ...' if len(self) > 3 else ''}."
            )
        return found

    def _between(self, first: Any, last: Any) -> np.ndarray:
        """Return the rows from one label to another, both included."""
        inside = np.ones(len(self), bool)
        kind = self.labels.dtype.kind
        if kind == "M":
            # The end of a month or a year that is named in short belongs to it.
            inside &= True if first is None else self.labels >= np.datetime64(first)
            inside &= True if last is None else self.labels < np.datetime64(last) + 1
        elif kind in "iuf" and not isinstance(first, str) and not isinstance(last, str):
            inside &= True if first is None else self.labels >= first
            inside &= True if last is None else self.labels <= last
        else:
            inside[: 0 if first is None else self._place(first)] = False
            inside[len(self) if last is None else self._place(last) + 1 :] = False
        return np.flatnonzero(inside)

    def text(self, rows: Any = None) -> list[str]:
        """Return the labels as a person would write them: all, or those of some rows.

        Which parts of a date are left out depends on all labels.

        Parameters
        ----------
        rows : sequence of int, optional
            The places of rows, counted from 0; all by default.

        Returns
        -------
        list of str

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import Mode
        >>> Mode("day", np.array(["2024-03-01", "2024-03-02"], "datetime64[s]")).text([1])
        ['2024-03-02']
        """
        labels = self.labels if rows is None else self.labels[np.asarray(rows)]
        if labels.dtype.kind == "M":
            return _dates(labels, self._unit)
        if labels.dtype.kind == "f":
            return [f"{value:.6g}" for value in labels]
        if self._counts_months:
            return [MONTHS[number - 1] for number in labels.tolist()]
        return [str(label) for label in labels.tolist()]


def checked_modes(modes: Iterable[Mode | str], shape: Sequence[int]) -> tuple[Mode, ...]:
    """Return the modes, or raise an error unless there is a label for every row of the tensor.

    A name alone is a mode whose rows are numbered.
    """
    named = tuple(modes)
    if len(named) != len(shape):
        raise InvalidDataError(
            f"A tensor of order {len(shape)} needs {len(shape)} named modes; got {len(named)}."
        )
    given = tuple(
        Mode.numbered(mode, size) if isinstance(mode, str) else mode
        for mode, size in zip(named, shape, strict=True)
    )
    for mode, size in zip(given, shape, strict=True):
        if not isinstance(mode, Mode):
            raise InvalidDataError(
                f"A mode must be a smartcpd.Mode or a name; got {mode!r:.60}. Write "
                "Mode(name, labels)."
            )
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
