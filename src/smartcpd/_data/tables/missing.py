"""Words that mean that there is no value."""

from __future__ import annotations

from smartcpd._data.tables.numerals import BLANKS
from smartcpd._data.tables.sql import literal

MISSING_LABELS = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan", "NULL"}
    | {"null", "Null", "(null)", "\\N", "#N/A N/A", "NaT"}
)
"""Labels that are none; case matters, as these are also words."""
MISSING_VALUES = frozenset(
    {word.lower() for word in MISSING_LABELS}
    | {"-", "--", "---", "–", "—", ".", "..", "...", "?", "*", "nil", "none", "n.a.", "n.a", "nd"}
    | {
        "n/d",
        "missing",
        "unknown",
        "#div/0!",
        "#value!",
        "#ref!",
        "#num!",
        "#name?",
        "(blank)",
        ":",
    }
    | {"0000-00-00", "0000-00-00 00:00:00", "inf", "-inf", "tbd", "not available"}
)
"""What stands for a missing number or date, in lower case."""


def clean_label(text: str, na: tuple[str, ...] | None = None) -> str:
    """SQL of a label without blanks around it, NULL where the words say that there is none."""
    words = MISSING_LABELS if na is None else {"", *na}
    trimmed = f"trim({text}, {literal(BLANKS + chr(10) + chr(13))})"
    return f"CASE WHEN {trimmed} NOT IN ({_listed(words)}) THEN {trimmed} END"


def is_missing(text: str, na: tuple[str, ...] | None = None) -> str:
    """SQL that says whether a text stands for a number or a date that is not there."""
    words = MISSING_VALUES if na is None else {"", *(word.lower() for word in na)}
    trimmed = f"lower(trim({text}, {literal(BLANKS)}))"
    return f"({text} IS NULL OR {trimmed} IN ({_listed(words)}))"


def _listed(words: frozenset[str] | set[str]) -> str:
    return ", ".join(map(literal, sorted(words)))
