"""What a page says of the rank: how it suits the data, and which others were compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd.report.text import escape, number, percent


def verdict(rank: RankVerdict) -> tuple[str, str]:
    """Return the verdict about the rank in a word or two, and what it rests on."""
    if rank.suits is Suits.UNKNOWN:
        return "Unclear", "too little data to predict held-out cells"
    value = f"{rank.rank} {'suits' if rank.suits is Suits.WELL else f'is {rank.suits}'}"
    if rank.suits is Suits.WELL:
        return value, "no other predicts held-out cells better"
    if rank.suits is Suits.HIGH:
        verb = "predicts" if rank.better == 1 else "predict"
        return value, f"{rank.better} {verb} held-out cells as well"
    if rank.explained is None or rank.better_explained is None:
        return value, f"{rank.better} predict held-out cells better"
    shares = f"{percent(rank.better_explained)} of held-out deviance, not {percent(rank.explained)}"
    return value, f"{rank.better} explain {shares}"


def headline(rank: RankVerdict) -> str:
    """Return the verdict in a sentence, its figures written as on the rest of the page."""
    return rank.headline.replace("%", " %")


def section(selection: Mapping[str, Any] | None) -> str:
    """Write the table of ranks that were compared, where the rank was left open."""
    if selection is None:
        return ""
    rows = []
    for row in selection["table"]:
        error = (
            "" if row["chosen"] and not row["behind"] else f" ± {number(row['behind_error'], 2)}"
        )
        agree = row["replicability"]
        cells = (
            str(row["rank"]),
            f"{number(row['behind'], 3)}{error}" if row["behind"] else "best",
            str(row["folds"]),
            "" if agree is None else f"{agree:.2f}",
        )
        mark = ' class="chosen" aria-current="true"' if row["chosen"] else ""
        inner = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        rows.append(f"<tr{mark}>{inner}</tr>")
    names = ("rank", "log-likelihood of a cell behind the best", "folds", "restarts agree")
    heads = "".join(f'<th scope="col" class="number">{name}</th>' for name in names)
    return (
        '<section aria-labelledby="selection"><h2 id="selection" tabindex="-1">Which rank</h2>'
        f"<p>{escape(selection['recommendation'])}</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Ranks that were compared">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        "</section>"
    )
