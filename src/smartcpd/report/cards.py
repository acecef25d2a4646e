"""A card for every component, and the bar of their shares over them."""

from __future__ import annotations

import numpy as np

from smartcpd._data.labels import Kind
from smartcpd._fitting.consensus import Stability
from smartcpd._fitting.shares import Readable
from smartcpd.report.maps import map_of
from smartcpd.report.pictures import factor_picture
from smartcpd.report.rows import ModeRows
from smartcpd.report.text import escape, percent

NAMED_BY = 2
"""Number of modes that the name of a component is made from."""
LONGEST_NAME = 40
SURE = 0.5
"""A component with a stability below this stands out."""

ROOM_OF_A_DIGIT = 2.8
"""The percentage of a narrow screen that a digit takes."""


def component_cards(
    shown: Readable, modes: list[ModeRows], names: list[str], stability: Stability | None = None
) -> str:
    """Write all cards, largest component first."""
    remarks = [_stability(stability, int(column)) for column in shown.order]
    cards = "".join(_card(shown, modes, r, names[r], remarks[r]) for r in range(shown.model.rank))
    return f'<div class="cards">{cards}</div>'


def share_bar(shown: Readable, names: list[str]) -> str:
    """Draw one bar cut into the shares of the components; each part leads to its card."""
    ends = np.concatenate([[0.0], np.cumsum(shown.shares)]) * 100.0
    parts = []
    for r, share in enumerate(shown.shares.tolist()):
        width = ends[r + 1] - ends[r]
        name = f"Component {r + 1}, {names[r]}: {percent(share)}"
        middle = f'<text x="{ends[r] + width / 2:.2f}%" y="20" text-anchor="middle">{r + 1}</text>'
        parts.append(
            f'<a href="#component-{r + 1}" aria-label="{escape(name)}">'
            f'<rect class="part{" even" if r % 2 else ""}" x="{ends[r]:.2f}%" '
            f'width="{width:.2f}%" height="30"><title>{escape(name)}</title></rect>'
            f"{middle if width > ROOM_OF_A_DIGIT * len(str(r + 1)) else ''}</a>"
        )
    return (
        f'<svg class="shares" role="group" aria-label="Shares of the components">'
        f"{''.join(parts)}</svg>"
    )


def titles(shown: Readable, modes: list[ModeRows]) -> list[str]:
    """Name each component by the rows that set it apart from the others.

    A mode says the more, the further its column is from the average of all components
    (Kullback-Leibler); within it, the row that adds most to that distance is named. Modes that say
    nothing are left out, as long as another is there.
    """
    named = [rows for rows in modes if rows.mode.kind in (Kind.CATEGORY, Kind.CYCLE)] or modes
    found = []
    for r in range(shown.model.rank):
        told = []
        for rows in named:
            row, distance = rows.telling(r)
            label = rows.text_of(row)
            short = label if len(label) <= LONGEST_NAME else label[: LONGEST_NAME - 1] + "…"
            of = {Kind.CATEGORY: "", Kind.CYCLE: f"{rows.mode.name} "}
            words = of.get(rows.mode.kind, f"{rows.mode.name} = ") + short
            told.append((-distance, rows.number, words))
        told.sort()
        kept = [words for distance, _, words in told[:NAMED_BY] if -distance > ModeRows.LITTLE]
        found.append(" · ".join(kept or [words for _, _, words in told[:NAMED_BY]]))
    return found


def _stability(stability: Stability | None, column: int) -> str:
    """Say how surely the component was found, in the colour of a warning if not even by half."""
    if stability is None:
        return ""
    kind = "steady" if stability.values[column] >= SURE else "unsure"
    return f'<p class="small {kind}">{escape(stability.words(column).capitalize())}.</p>'


def _place(shown: Readable, r: int) -> str:
    """Say where a component is in a model whose components are in another order than the cards."""
    place = int(shown.order[r])
    return "" if place == r else f'<p class="small">Component {place + 1} of the model.</p>'


def _card(shown: Readable, modes: list[ModeRows], r: int, name: str, remark: str) -> str:
    share = float(shown.shares[r])
    pictures = "".join(factor_picture(rows, r) for rows in modes)
    return (
        f'<article class="card" id="component-{r + 1}" data-component="{r}" tabindex="-1" '
        f'aria-labelledby="component-{r + 1}-title">'
        f'<header><span class="order" aria-hidden="true">{r + 1}</span>'
        f'<h3 id="component-{r + 1}-title"><span class="unseen">Component {r + 1}: </span>'
        f"{escape(name)}</h3>"
        f'<p class="share"><b>{percent(share)}</b> <span>of the {shown.share_of}</span></p>'
        "</header>"
        f'<svg class="bar share-line" viewBox="0 0 100 4" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect class="track" width="100" height="4"/>'
        f'<rect class="fill" width="{100 * share:.2f}" height="4"/></svg>'
        f"{remark}{pictures}{map_of(modes, r)}"
        f'<p class="tools" hidden>Save as '
        f'<button type="button" class="save" value="csv">CSV</button> '
        f'<button type="button" class="save" value="svg">SVG</button> '
        f'<button type="button" class="save" value="png">PNG</button></p>'
        f"{_place(shown, r)}</article>"
    )
