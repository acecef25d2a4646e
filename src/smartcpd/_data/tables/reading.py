"""What the user says about how a table is written; what is not said is found out."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from smartcpd.errors import InvalidParameterError

ORDERS = {"day-first": "dmy", "month-first": "mdy", "year-first": "ymd"}
"""Words for the order of day, month and year."""
EPOCHS = {"epoch": 10**6, "epoch-ms": 10**3, "epoch-us": 1, "epoch-ns": -(10**3)}
"""Words for times counted from 1970, and the microseconds of one unit; below zero a divisor."""
ALL = "*"
"""What stands for all columns that have no format of their own."""
EXCEL = "excel"
"""The word for days counted from the beginning of 1900, as spreadsheets do."""


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, as far as the user says.

    Parameters
    ----------
    header : bool, optional
        Whether the first line of a text file names its columns.
    delimiter, encoding : str, optional
        Of a text file.
    decimal, thousands : str, optional
        The signs in numbers that are text.
    na : tuple of str, optional
        The words that mean a missing value, in place of the usual ones.
    date_format : dict
        From columns to formats; the format for all others is under `ALL`.
    melt : dict
        From new modes to the columns that become their labels.
    """

    header: bool | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] | None = None
    date_format: Mapping[str, str] | None = None
    melt: Mapping[str, Any] | None = None

    def format_of(self, column: str) -> str | None:
        formats = self.date_format or {}
        return formats.get(column, formats.get(ALL))


def as_reading(
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na: str | Iterable[str] | None = None,
    date_format: str | Mapping[str, str] | None = None,
    melt: Mapping[str, Any] | None = None,
) -> Reading:
    """Check what the user says, before anything is read."""
    if delimiter is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise InvalidParameterError(
                f"delimiter must be one character, such as ';' or 'tab'; got {delimiter!r}."
            )
    if encoding is not None:
        encoding = _codec(encoding)
    if decimal not in (None, ".", ","):
        raise InvalidParameterError(f"decimal must be '.' or ','; got {decimal!r}.")
    thousands = {"space": " ", "none": ""}.get(thousands or "", thousands)
    if thousands not in (None, "", ".", ",", " ", "'", "_"):
        raise InvalidParameterError(
            f"thousands must be ',', '.', ''', '_', 'space' or 'none'; got {thousands!r}."
        )
    if thousands and thousands == (decimal or {".": ","}.get(thousands, ".")):
        raise InvalidParameterError(
            f"decimal and thousands are both {thousands!r}; they must differ."
        )
    words = None if na is None else (na,) if isinstance(na, str) else tuple(map(str, na))
    if melt is not None and (not isinstance(melt, Mapping) or len(melt) != 1):
        raise InvalidParameterError(
            "melt must be a dict from the name of one new mode to the columns that become its "
            f"labels, such as {{'month': 'JAN:DEC'}}; got {melt!r}."
        )
    formats = _formats(date_format)
    return Reading(header, delimiter, encoding, decimal, thousands, words, formats, melt)


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise InvalidParameterError(
            f"encoding={encoding!r} is not known; use 'utf-8', 'utf-16', 'latin-1', 'cp1252' or "
            "another one that Python knows."
        ) from None


def _formats(given: str | Mapping[str, str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    formats = {ALL: given} if isinstance(given, str) else dict(given)
    for text in formats.values():
        if text not in (*ORDERS, *EPOCHS, EXCEL) and "%" not in str(text):
            raise InvalidParameterError(
                f"date_format={text!r} is not a format; write it with the signs of strptime, such "
                "as '%d/%m/%Y %H:%M', or one of "
                f"{', '.join(repr(word) for word in (*ORDERS, *EPOCHS, EXCEL))}."
            )
    return formats
