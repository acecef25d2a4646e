"""Sentences about which rows of a table were left out, and why."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from smartcpd.errors import InvalidDataError

logger = logging.getLogger("smartcpd.tables")

WARNING = "Warning: "
"""How a note begins that users must see."""
WARNED, REFUSED = 0.01, 0.20
"""The shares of lost rows above which users are warned, and above which nothing is made of the
rest.
"""


class Account:
    """Collects sentences about what was decided, and about what was left out."""

    def __init__(self) -> None:
        self.decisions: list[str] = []
        self.losses: list[str] = []
        self.malformed = 0
        self.warning = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return (*filter(None, [self.warning]), *self.losses, *self.decisions)

    def decide(self, *sentences: str) -> None:
        self.decisions.extend(s for s in sentences if s and s not in self.decisions)

    def lose(self, sentence: str) -> None:
        self.losses.append(sentence)

    def missing(self, column: str, fault: str, count: int, rows: int) -> None:
        if count:
            verb = "is" if count == 1 else "are"
            self.lose(f"{count:,} of {rows:,} rows {verb} left out: {column!r} {fault}.")

    def rejected(self, faults: Sequence[tuple[Any, ...]]) -> None:
        """Note rows of text files that do not fit in the table."""
        for kind, column, count, message, line in faults:
            what = f"{column!r} cannot be read" if kind == "CAST" else kind.lower()
            verb = "row is" if count == 1 else "rows are"
            first = " ".join(str(message).split()).rstrip(".")
            self.malformed += count
            self.lose(
                f"{count:,} malformed {verb} left out: {what} (the first on line {line}: {first})."
            )

    def judge(self, lost: int, rows: int, allowed: bool) -> None:
        """Warn if many rows are lost, and raise an error if too many are, unless that is allowed.

        ``lost`` are those of the ``rows`` that could be read.
        """
        lost, rows = lost + self.malformed, rows + self.malformed
        share = lost / max(rows, 1)
        if share <= WARNED:
            return
        said = f"{lost:,} of {rows:,} rows ({100 * share:.2g} %)"
        if share > REFUSED and not allowed:
            raise InvalidDataError(
                f"{said} cannot be used. {' '.join(self.losses)} Leave such a column out, say how "
                "it is written (date_format=, decimal=, thousands=, na=, delimiter=), or go on "
                "without these rows by allow_lost_rows=True."
            )
        self.warning = f"{WARNING}{said} cannot be used and are left out."

    def report(self) -> None:
        if self.warning:
            logger.warning(self.warning)
        for sentence in self.losses:
            logger.log(logging.WARNING if self.warning else logging.INFO, sentence)
        for sentence in self.decisions:
            logger.info(sentence)
