"""Rows of modes by their labels or their places, as tensors and models are cut by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd.errors import InvalidParameterError


@dataclass(frozen=True)
class Chosen:
    """Rows of some modes. A mode of which a single row was named goes, as in NumPy and xarray."""

    rows: dict[int, np.ndarray]
    single: tuple[int, ...]

    @classmethod
    def by_label(cls, modes: Sequence[Mode], wanted: Mapping[str, Any]) -> Chosen:
        """Choose by labels: one, a list, or a slice from one label to another, both included."""
        names = [mode.name for mode in modes]
        unknown = set(wanted) - set(names)
        if unknown:
            raise InvalidParameterError(
                f"No mode is called {unknown.pop()!r}; they are {', '.join(map(repr, names))}."
            )
        found = {names.index(name): modes[names.index(name)].rows(w) for name, w in wanted.items()}
        return cls._of(found)

    @classmethod
    def by_place(cls, key: Any, shape: Sequence[int]) -> Chosen:
        """Choose by places counted from 0, as an index of NumPy does, mode by mode."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [k for k in keys if k is Ellipsis]:
            at = next(n for n, k in enumerate(keys) if k is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
        if len(keys) > len(shape):
            raise IndexError(f"{len(keys)} indices for a tensor of {len(shape)} modes.")
        found = {}
        for n, (k, size) in enumerate(zip(keys, shape, strict=False)):
            if not (isinstance(k, slice) and k == slice(None)):
                found[n] = np.arange(size)[np.asarray(k) if isinstance(k, list) else k]
        return cls._of(found)

    @classmethod
    def _of(cls, found: Mapping[int, np.ndarray]) -> Chosen:
        single = tuple(n for n, rows in found.items() if np.ndim(rows) == 0)
        rows = {n: np.atleast_1d(r) for n, r in found.items()}
        for r in rows.values():
            if r.size == 0 or np.unique(r).size < r.size:
                raise InvalidParameterError(
                    "Rows must be chosen once each, and at least one of a mode."
                )
        return cls(rows, single)

    def modes(self, modes: Sequence[Mode]) -> tuple[Mode, ...]:
        """The modes that are left, with the labels that are left."""
        return tuple(
            Mode(mode.name, mode.labels[self.rows[n]], mode.kind) if n in self.rows else mode
            for n, mode in enumerate(modes)
            if n not in self.single
        )


def cells_by_label(modes: Sequence[Mode], cells: Any) -> tuple[np.ndarray, ...] | None:
    """Return places of cells that are named by labels; None if they are given by their places.

    Labels come by the names of the modes (a mapping, a DataFrame), or as a table of text with a
    column a mode.
    """
    names = [mode.name for mode in modes]
    if isinstance(cells, Mapping) or hasattr(cells, "columns"):
        given = list(cells.keys() if isinstance(cells, Mapping) else cells.columns)
        missing = [name for name in names if name not in given]
        if missing:
            raise InvalidParameterError(
                f"Cells need a label of each mode; {', '.join(map(repr, missing))} "
                f"{'is' if len(missing) == 1 else 'are'} missing among "
                f"{', '.join(map(repr, given))}."
            )
        return tuple(mode.rows(np.asarray(cells[mode.name])) for mode in modes)
    if isinstance(cells, tuple):
        return None
    rows = cells if isinstance(cells, np.ndarray) else list(cells)
    table = np.array(rows, dtype=object)
    if (
        table.ndim == 2
        and table.shape[1] == len(modes)
        and any(isinstance(value, str) for value in table[:1].flat)
    ):
        return tuple(mode.rows(table[:, n]) for n, mode in enumerate(modes))
    return None
