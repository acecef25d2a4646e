"""One text file of a table: what is known of it, and what reading it line by line tells."""

from __future__ import annotations

import csv
import io
from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from smartcpd._data.tables.dialect import Dialect
from smartcpd._data.tables.unpacking import PIECE, binary, western
from smartcpd.errors import InvalidDataError


@dataclass(frozen=True)
class TextFile:
    """A text file, its layout and its encoding."""

    path: str
    start: str
    """The beginning of its text, up to the end of a line."""
    dialect: Dialect
    encoding: str | None
    """None for UTF-8."""

    def encoding_throughout(self) -> str:
        """Return the encoding; that of the whole file, where its beginning looks like UTF-8."""
        if self.encoding is not None:
            return self.encoding
        if self._is_packed_for_duckdb:
            raise InvalidDataError(f"{self.path!r} is not in UTF-8; unpack it first.")
        decoder = getincrementaldecoder("utf-8")()
        with binary(self.path) as file:
            while piece := file.read(PIECE):
                try:
                    decoder.decode(piece)
                except UnicodeDecodeError:
                    return western(piece)
        return "utf-8"

    def ends_in_quotes(self) -> bool:
        """Whether a value goes on to the end of the file, which DuckDB then leaves out."""
        try:
            for _ in self.records(strict=True):
                pass
        except csv.Error as error:
            return "unexpected end" in str(error) or "field limit" in str(error)
        return False

    def records(self, strict: bool = False) -> Iterator[tuple[list[str], int]]:
        """Yield the fields of all lines of the file, and the line on which each begins."""
        options: dict[str, Any] = {"delimiter": self.dialect.delimiter, "strict": strict}
        if not self.dialect.quoted:
            options["quoting"] = csv.QUOTE_NONE
        elif self.dialect.escape == "\\":
            options |= {"escapechar": "\\", "doublequote": False}
        else:
            options["quotechar"] = self.dialect.quote
        if self._is_packed_for_duckdb:
            return
        with binary(self.path) as packed:
            text = io.TextIOWrapper(packed, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text, **options)
            line = 1
            for fields in reader:
                yield fields, line
                line = reader.line_num + 1

    @property
    def _is_packed_for_duckdb(self) -> bool:
        """Whether only DuckDB can unpack it."""
        return self.path.lower().endswith(".zst")
