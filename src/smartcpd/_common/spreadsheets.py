"""Text for tables that people open in spreadsheets, which run what looks like a formula."""

from __future__ import annotations

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that spreadsheets would run."""


def inert(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would run it; numbers stay.

    Names and labels come from data, which may have been written to be run.

    Examples
    --------
    >>> inert("=1+1"), inert("-1.5"), inert("Oslo")
    ("'=1+1", '-1.5', 'Oslo')
    """
    return f"'{text}" if text.startswith(FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
