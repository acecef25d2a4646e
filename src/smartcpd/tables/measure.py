"""What a cell holds: how many events, their sum, their mean, or whether there was one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.tables.columns import Column, Family

AGGREGATES = ("auto", "count", "sum", "mean", "any")
BITS = 85
"""Of the largest value, so that 2^41 of them fit into 127 bits."""


@dataclass(frozen=True)
class Measure:
    """An aggregate, and the column it is taken of."""

    agg: str
    column: Column | None

    @property
    def absent(self) -> str:
        return "unobserved" if self.agg == "mean" else "zero"

    @property
    def fault(self) -> str:
        assert self.column is not None
        text = self.column.family is Family.TEXT
        return "is missing or not a number" if text else self.column.missing()

    @property
    def _needs_scale(self) -> bool:
        return self.agg in ("sum", "mean") and self._is_float

    @property
    def _is_float(self) -> bool:
        column = self.column
        return column is not None and (
            column.family is Family.TEXT or column.type in ("FLOAT", "DOUBLE")
        )

    def value(self) -> str:
        """The SQL of a row's value, NULL where it is not usable."""
        assert self.column is not None
        if self._is_float:
            return self.column.real()
        flag = self.column.family is Family.FLAG
        return f"CAST({self.column.sql} AS TINYINT)" if flag else self.column.sql

    def facts(self) -> tuple[str, ...]:
        return (f"max(abs({self.value()}))",) if self._needs_scale else ()

    def aggregates(self, facts: Sequence[Any]) -> list[str]:
        """SQL of what is kept of the value ``v`` of a group's rows."""
        if self.column is None:
            return []
        kept = ["count(v) AS used"]
        if self.agg == "any":
            kept.append("max(v <> 0) AS total")
        elif self._needs_scale:
            # Sums of doubles depend on their order, hence on threads. Whole numbers do not.
            scale = scale_of(facts[0])
            kept.append(f"sum(CAST(v * CAST('{scale!r}' AS DOUBLE) AS HUGEINT)) AS total")
        elif self.agg in ("sum", "mean"):
            kept.append("sum(v) AS total")
        return kept

    def result(self, facts: Sequence[Any], fits: bool) -> str:
        """SQL of a cell's value; whole numbers stay whole if they fit into 64 bits."""
        if self.agg == "any":
            return "CAST(1 AS UTINYINT)" if self.column is None else "CAST(total AS UTINYINT)"
        if self.agg == "count":
            return "rows" if self.column is None else "used"
        total = "total"
        if self._needs_scale:
            total = f"(CAST(total AS DOUBLE) / CAST('{scale_of(facts[0])!r}' AS DOUBLE))"
        elif self.agg == "sum" and fits and self._is_whole:
            return "CAST(total AS BIGINT)"
        total = f"CAST({total} AS DOUBLE)"
        return f"{total} / used" if self.agg == "mean" else total

    @property
    def _is_whole(self) -> bool:
        return self.column is not None and self.column.family in (Family.WHOLE, Family.FLAG)

    @property
    def may_outgrow(self) -> bool:
        return self.agg == "sum" and self._is_whole


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


def scale_of(largest: float | None) -> float:
    """A power of two that makes whole numbers of doubles."""
    if not largest:
        return 1.0
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, min(BITS - exponent, 1000))


def smallest(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the smallest type that compiled code is made for."""
    if values.dtype.kind not in "iu" or values.size == 0 or values.min() < 0:
        return values
    fitting = np.min_scalar_type(values.max())
    return values.astype(fitting) if fitting.itemsize <= 4 else values.astype(np.int64)
