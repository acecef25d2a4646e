"""Sentences about which rows of a table were left out, and why."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

logger = logging.getLogger("smartcpd.tables")


class Account:
    """Collects sentences about what was decided, and about what was left out."""

    def __init__(self) -> None:
        self.decisions: list[str] = []
        self.losses: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.losses, *self.decisions)

    def decide(self, *sentences: str) -> None:
        self.decisions.extend(s for s in sentences if s not in self.decisions)

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
            self.lose(
                f"{count:,} malformed {verb} left out: {what} (the first on line {line}: {first})."
            )

    def report(self) -> None:
        for sentence in self.losses:
            logger.warning(sentence)
        for sentence in self.decisions:
            logger.info(sentence)
