"""Numbers and labels as text, safe to stand in a page."""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

LONGEST_LABEL = 120


def escape(text: Any) -> str:
    """Escape data so that it may stand between tags and in quoted attributes."""
    return html.escape(str(text), quote=True)


def with_code(text: str) -> str:
    """Escape a sentence, and set what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def shortened(text: str) -> str:
    """Cut a label where nobody would read on."""
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def embedded(value: Any) -> str:
    """Return JSON that may stand in a script element, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def percent(share: float) -> str:
    """Write a share as a percentage with two significant digits."""
    value = 100.0 * share
    if value == 0:
        return "0 %"
    if abs(value) < 0.01:
        return "< 0.01 %" if value > 0 else "> −0.01 %"
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 1 else 2
    return f"{value:.{digits}f} %".replace("-", "−")


def number(value: float | None, digits: int = 3) -> str:
    """Write a number as short as it may be: 12,345 or 0.0123 or 1.2e-07."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    short = f"{value:.{digits}g}"
    if abs(value) >= 10**digits or "e+" in short:  # which 999.9 is when it is rounded
        short = f"{value:,.0f}"
    return short.replace("-", "−")


def joined(names: list[str]) -> str:
    """Join names as in "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
