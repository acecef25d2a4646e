"""What a cell holds: how many events, their sum, their mean, or whether there was one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.tables.columns import Column, Family
from smartcpd.tables.sql import number

AGGREGATES = ("auto", "count", "sum", "mean", "any")
BITS = 85
"""Of the largest value, so that 2^41 of them fit into 127 bits."""
LARGEST = 2**63


@dataclass(frozen=True)
class Measure:
    """An aggregate, and the column it is taken of."""

    agg: str
    column: Column | None
    scale: float = 1.0
    """What makes whole numbers of real ones. Sums of real numbers depend on their order, hence on
    the number of threads; sums of whole ones do not."""
    fits: bool = True
    """Whether sums of whole numbers stay below 64 bits."""

    @property
    def absent(self) -> str:
        return "unobserved" if self.agg == "mean" else "zero"

    @property
    def fault(self) -> str:
        """What is wrong with values that are left out."""
        assert self.column is not None
        text = self.column.family is Family.TEXT
        return "is missing or not a number" if text else self.column.missing()

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
        """The SQL of a row's value, NULL where it is not usable."""
        if self.column is None:
            return None
        if self._is_float:
            return self.column.real()
        flag = self.column.family is Family.FLAG
        return f"CAST({self.column.sql} AS TINYINT)" if flag else self.column.sql

    def facts(self) -> tuple[str, ...]:
        """SQL of what `scaled` must know: the largest value."""
        return (f"max(abs(CAST({self.value()} AS DOUBLE)))",) if self._adds else ()

    def scaled(self, rows: int, facts: Sequence[Any]) -> Measure:
        """The same for a table of so many rows."""
        if not facts or not facts[0]:
            return self
        if self._is_float:
            exponent = math.frexp(facts[0])[1]
            return replace(self, scale=math.ldexp(1.0, min(BITS - exponent, 1000)))
        return replace(self, fits=facts[0] * rows < LARGEST)

    def aggregates(self) -> list[str]:
        """SQL of what is kept of the value ``v`` of a group's rows."""
        if self.column is None:
            return []
        kept = ["count(v) AS used"]
        if self.agg == "any":
            kept.append("max(v <> 0) AS total")
        elif self._adds and self._is_float:
            kept.append(f"sum(CAST(v * {number(self.scale)} AS HUGEINT)) AS total")
        elif self._adds:
            kept.append("sum(v) AS total")
        return kept

    def results(self) -> list[str]:
        """SQL of the value of a group, and how many of its rows have one."""
        value = f"coalesce({self._result()}, 0) AS value"
        return [value] if self.column is None else ["used", value]

    def _result(self) -> str:
        if self.agg == "any":
            return "CAST(1 AS UTINYINT)" if self.column is None else "CAST(total AS UTINYINT)"
        if self.agg == "count":
            return "rows" if self.column is None else "used"
        if self.agg == "sum" and self._is_whole and self.fits:
            return "CAST(total AS BIGINT)"
        total = "CAST(total AS DOUBLE)"
        if self._is_float:
            total = f"{total} / {number(self.scale)}"
        return f"{total} / used" if self.agg == "mean" else total


def measure(agg: str, column: Column | None) -> Measure:
    """Of the names that the user gave."""
    if agg not in AGGREGATES:
        raise InvalidParameterError(f"agg must be one of {', '.join(AGGREGATES)}; got {agg!r}.")
    if agg == "auto":
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
    return Measure(agg, column)


def smallest(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the smallest type, as tensors are read from files."""
    if values.dtype.kind not in "iu" or values.size == 0 or values.min() < 0:
        return values
    fitting = np.min_scalar_type(values.max())
    return values.astype(fitting if fitting.itemsize <= 4 else np.int64)
