"""A selection in words: the table for a terminal, and one sentence."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartcpd._inference.selection.result import Row, Selection

AGREE, DISAGREE = 0.95, 0.8
"""Factor match scores from which on restarts found the same, and below which they did not."""


def text_table(selection: Selection) -> str:
    """Write columns of equal width; the choice has an arrow."""
    digits = _digits([row.behind_error for row in selection.rows])
    likely = any(math.isfinite(row.log_likelihood) for row in selection.rows)
    headings = ["", "loss", "rank", "log-likelihood" if likely else "deviance", "behind the best"]
    headings += ["folds", "restarts agree", "core consistency"]
    lines = [headings]
    for row in selection.rows:
        lines.append(
            [
                "->" if row.chosen else "",
                row.loss,
                str(row.rank),
                f"{row.log_likelihood if likely else row.deviance:.{digits}f}",
                _with_error(row.behind, row.behind_error, digits),
                str(row.folds),
                "" if row.replicability is None else f"{row.replicability:.2f}",
                _consistency(row.core_consistency),
            ]
        )
    filled = [n for n in range(len(headings)) if n < 6 or any(line[n] for line in lines[1:])]
    lines = [[line[n] for n in filled] for line in lines]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    shown = []
    for line in lines:
        cells = [
            text.ljust(width) if n < 2 else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        shown.append("  ".join(cells).rstrip())
    unit = "Scores are means over held-out cells"
    return "\n".join([f"{unit} ({selection.cv} folds by {selection.holdout}).", *shown])


def _consistency(percent: float | None) -> str:
    """Write a core consistency; how far it is below 0 says nothing."""
    if percent is None:
        return ""
    return "below 0" if percent < 0 else f"{percent:.0f} %"


def recommendation(selection: Selection) -> str:
    """Say what to use, and how sure that is."""
    row = next(row for row in selection.rows if row.chosen)
    text = f"Use rank {selection.rank} with loss {selection.loss}: {_why(selection, row)}"
    reliable = _restarts(row)
    if reliable:
        text += f"; {reliable}"
    return f"{text}."


def _why(selection: Selection, row: Row) -> str:
    own = [other for other in selection.rows if other.loss == row.loss]
    below = [other for other in own if other.rank < row.rank]
    above = [other for other in own if other.rank > row.rank]
    parts = []
    if below:
        nearest = max(below, key=lambda other: other.rank)
        text = f"rank {nearest.rank} predicts held-out cells worse"
        if nearest.behind_error > 0:
            errors = nearest.behind / nearest.behind_error
            text += f" ({errors:.1f} standard errors behind the best)"
        parts.append(text)
    if above and all(other.behind >= -other.behind_error for other in above):
        what = "them" if below else "held-out cells"
        parts.append(f"no higher rank predicts {what} better by more than a standard error")
    elif above:
        parts.append("higher ranks that may be better were tried on fewer folds")
    elif row.rank == selection.limit and len(own) > 1:
        parts.append("it is the highest rank that was tried, and higher ones may be better still")
    others = sorted({other.loss for other in selection.rows} - {row.loss})
    if others:
        parts.append(_against(selection, row, others))
    for loss in selection.left_out:
        parts.append(f"nothing asks for {loss}")
    return ", ".join(parts) or "it is all that was tried"


def _against(selection: Selection, row: Row, others: list[str]) -> str:
    best = {
        loss: min((r for r in selection.rows if r.loss == loss), key=lambda r: r.behind)
        for loss in others
    }
    close = [loss for loss, other in best.items() if other.behind <= other.behind_error]
    if close:
        return f"{' and '.join(close)} is about as good"
    return f"{' and '.join(others)} is worse at every rank that was tried"


def _restarts(row: Row) -> str:
    match = row.replicability
    if match is None:
        return ""
    if match >= AGREE:
        return f"restarts find the same components (match {match:.2f})"
    if match >= DISAGREE:
        return f"restarts find similar components (match {match:.2f})"
    return (
        f"but restarts find different components (match {match:.2f}), so read them with care or "
        "use a lower rank"
    )


def _digits(errors: list[float]) -> int:
    """Return the decimals with which a typical error has two digits."""
    known = [error for error in errors if math.isfinite(error) and error > 0]
    if not known:
        return 4
    return min(9, max(2, 1 - math.floor(math.log10(statistics.median(known)))))


def _with_error(value: Any, error: float, digits: int) -> str:
    if value == 0 and error == 0:
        return "best"
    return f"{value:.{digits}f} ± {error:.{digits}f}"
