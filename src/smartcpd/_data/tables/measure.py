"""The aggregate that a cell holds: how many events, their sum, their mean, or whether there are
any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.sql import number
from smartcpd.errors import InvalidDataError, InvalidParameterError

AGGREGATES = ("auto", "count", "sum", "mean", "any")
BITS = 85
"""Number of bits of the largest value, such that 2^41 values add up to at most 127 bits."""
LARGEST = 2**63
EXACT = 2**53
"""Whole numbers up to this one are exact as real ones."""


@dataclass(frozen=True)
class Measure:
    """An aggregate, and the column whose values it takes."""

    agg: str
    column: Column | None
    scale: float = 1.0
    """The factor that makes whole numbers of real ones. Sums of real numbers depend on their order,
    hence on the number of threads; sums of whole ones do not.
    """
    fits: bool = True
    """Whether sums of whole numbers stay below 64 bits."""
    largest: float = 0.0
    """A bound on the size of all values."""
    exact: bool = False
    """Whether sums of whole numbers are exact as real ones."""
    lowest: float | None = None
    """The smallest value, if there is any."""
    complete: bool = False
    """Whether every row is known to have a value, which saves looking at each of them again."""
    chosen: bool = False
    """Whether the aggregate follows from the column, the user having said none."""

    def absent(self, wanted: str | None, melted: bool, most: int) -> tuple[str, str]:
        """Return what cells without rows are, and a sentence where that is a choice.

        Parameters
        ----------
        wanted : str or None
            What the user says: "zero" or "missing".
        melted : bool
            Whether the table was wide, so that every cell is in it.
        most : int
            The number of rows of the fullest cell.
        """
        if wanted is not None:
            return ("zero" if wanted == "zero" else "unobserved"), ""
        if self.column is None or self.agg in ("count", "any"):
            return "zero", ""
        if self.agg == "mean":
            return "unobserved", ""
        name = self.column.name
        if melted:
            return "unobserved", (
                f"Cells of the wide table without a {name!r} are missing, not 0; absent='zero' "
                "makes them 0."
            )
        if most > 1 and self.chosen and self.column.family is Family.REAL:
            return "zero", (
                f"{name!r} is added up in cells of several rows, and cells without a row are 0; "
                "agg='mean' takes the mean, and leaves these cells missing."
            )
        if most > 1:
            return "zero", ""
        if self.column.family is Family.REAL or (self.lowest or 0) < 0:
            return "unobserved", (
                f"{name!r} is taken for a measurement, since no cell has more than one row: cells "
                "without a row are missing, not 0; absent='zero' makes them 0."
            )
        if self.column.family is Family.FLAG and self.lowest == 0:
            return "unobserved", (
                f"{name!r} says yes or no of each cell that has a row: cells without one are "
                "missing, not 0; absent='zero' makes them 0."
            )
        return "zero", (
            f"Cells without a row are 0, as {name!r} holds whole numbers, as counts are; "
            "absent='missing' makes them missing."
        )

    @property
    def fault(self) -> str:
        """What is wrong with values that are left out, in words."""
        assert self.column is not None
        return self.column.missing("a number")

    @property
    def _adds(self) -> bool:
        return self.agg in ("sum", "mean")

    @property
    def _is_float(self) -> bool:
        column = self.column
        return column is not None and (
            column.family is Family.TEXT or column.type in ("FLOAT", "DOUBLE")
        )

    @property
    def _is_whole(self) -> bool:
        return self.column is not None and self.column.family in (Family.WHOLE, Family.FLAG)

    def value(self) -> str | None:
        """SQL of a row's value, NULL where it is not usable."""
        if self.column is None:
            return None
        if self._is_float:
            if self.complete and self.column.type == "DOUBLE":
                return self.column.sql
            return self.column.real()
        flag = self.column.family is Family.FLAG
        return f"CAST({self.column.sql} AS TINYINT)" if flag else self.column.sql

    @property
    def sorts(self) -> bool:
        """Whether `real` and `of_sums` give the same as `aggregates` and `results`."""
        return self.column is None or (
            self._adds and (self._is_float or (self._is_whole and self.exact))
        )

    def real(self) -> str | None:
        """SQL of a row's value as a real number, NaN where it is not usable."""
        if self.column is None:
            return None
        value = f"CAST({self.value()} AS DOUBLE)"
        return value if self.complete else f"coalesce({value}, CAST('nan' AS DOUBLE))"

    def of_sums(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        """Return the values of cells from sums of real numbers."""
        totals = columns["value"]
        if self.agg == "mean":
            # Cells without any value are left out later.
            return totals / np.maximum(columns["rows" if self.complete else "used"], 1)
        return totals.astype(np.int64) if self._is_whole else totals

    def facts(self) -> tuple[str, ...]:
        """SQL of what `informed` must know: how many values there are, and the largest."""
        if self.column is None:
            return ()
        largest = f"max(abs(CAST({self.value()} AS DOUBLE)))" if self._adds else "NULL"
        return f"count({self.value()})", largest, f"min({self.value()})"

    def informed(self, rows: int, facts: Sequence[Any]) -> Measure:
        """Return the same measure for a table of so many rows, about which these facts are
        known.
        """
        if not facts:
            return self
        count, largest = facts[0], facts[1] or 0.0
        known = replace(
            self,
            complete=count == rows,
            largest=largest,
            lowest=facts[2],
            fits=largest * rows < LARGEST,
            exact=largest * rows < EXACT,
        )
        if self._is_float and largest:
            exponent = math.frexp(largest)[1]
            return replace(known, scale=math.ldexp(1.0, min(BITS - exponent, 1000)))
        return known

    def aggregates(self) -> list[str]:
        """SQL of what is kept of the value ``v`` of a group's rows."""
        if self.column is None:
            return []
        kept = [] if self.complete else ["count(v) AS used"]
        if self.agg == "any":
            kept.append("max(v <> 0) AS total")
        elif self._adds and self._is_float:
            kept.append(f"sum(CAST(v * {number(self.scale)} AS HUGEINT)) AS total")
        elif self._adds:
            kept.append("sum(v) AS total")
        return kept

    def results(self) -> list[str]:
        """SQL of the number of rows and the value of a group, and how many of the rows have one.

        A value that follows from these numbers of rows is left to `finished`.
        """
        names = ["rows"] if self.column is None or self.complete else ["rows", "used"]
        if self._adds or (self.agg == "any" and self.column is not None):
            names.append(f"coalesce({self._result()}, 0) AS value")
        return names

    def _result(self) -> str:
        if self.agg == "any":
            return "CAST(total AS UTINYINT)"
        if self.agg == "sum" and self._is_whole and self.fits:
            return "CAST(total AS BIGINT)"
        total = "CAST(total AS DOUBLE)"
        if self._is_float:
            total = f"{total} / {number(self.scale)}"
        return f"{total} / {'rows' if self.complete else 'used'}" if self.agg == "mean" else total

    def finished(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        """Return the values of cells, whole numbers in the smallest type that holds them."""
        if "value" in columns:
            return _smallest(columns["value"])
        if self.agg == "any":
            return np.ones(columns["rows"].size, np.uint8)
        return _smallest(columns["used" if "used" in columns else "rows"])


def measure(agg: str, column: Column | None) -> Measure:
    """Return the measure for the aggregate and the column that the user named."""
    if agg not in AGGREGATES:
        raise InvalidParameterError(f"agg must be one of {', '.join(AGGREGATES)}; got {agg!r}.")
    chosen = agg == "auto"
    if chosen:
        agg = "count" if column is None else "sum"
    if column is None:
        if agg in ("sum", "mean"):
            raise InvalidParameterError(
                f"agg={agg!r} needs a column of numbers; name it with value=..., or use "
                "agg='count'."
            )
    elif column.family not in (Family.WHOLE, Family.REAL, Family.FLAG, Family.TEXT):
        raise InvalidDataError(
            f"Column {column.name!r} holds {column.family}, which cannot be a value; choose a "
            "column of numbers."
        )
    return Measure(agg, column, chosen=chosen)


def _smallest(values: np.ndarray) -> np.ndarray:
    """Convert values to the types that tensors are read from files in."""
    if values.dtype.kind not in "iu" or values.size == 0 or values.min() < 0:
        return values
    fitting = np.min_scalar_type(values.max())
    return values.astype(fitting if fitting.itemsize <= 4 else np.int64)
