"""All components at a glance: a row each, and what each mode says in it."""

from __future__ import annotations

import math

from smartcpd._fitting.shares import Readable
from smartcpd.report.rows import ModeRows
from smartcpd.report.text import escape, percent

LONGEST = 28
FEWEST = 2
"""From so many components on there is something to look over and to compare."""


def overview(shown: Readable, modes: list[ModeRows], names: list[str]) -> str:
    """Write a table of components by modes, which a script can sort and filter."""
    if shown.model.rank < FEWEST:
        return ""
    heads = [_head("#", "order", "number"), _head("component", "name")]
    heads.append(_head(f"share of the {shown.share_of}", "share", "number"))
    heads += [_head(rows.mode.name, f"mode-{rows.number}") for rows in modes]
    body = "".join(_row(shown, modes, names, r) for r in range(shown.model.rank))
    return (
        '<section class="overview" aria-labelledby="overview">'
        '<h3 id="overview" tabindex="-1">Overview</h3>'
        '<p class="small">In each mode the label that sets a component apart most; the longer the '
        "bar, the further the component is from the average of all.</p>"
        '<p class="tools" hidden><label for="filter">Show components with</label> '
        '<input id="filter" type="search" placeholder="any word" autocomplete="off"> '
        '<span id="filter-status" role="status"></span></p>'
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Overview of components">'
        f'<table id="matrix"><thead><tr>{"".join(heads)}</tr></thead><tbody>{body}</tbody></table>'
        "</div></section>"
    )


def comparison() -> str:
    """Write the place where a script puts two components side by side."""
    return (
        '<section id="compare" class="compare" aria-labelledby="compare-title" hidden>'
        '<h3 id="compare-title" tabindex="-1">Compare two</h3>'
        '<p class="tools"><label for="one">Component</label> <select id="one"></select> '
        '<label for="two">with</label> <select id="two"></select></p>'
        '<div id="compared" class="cards" role="region" aria-live="polite" '
        'aria-label="Comparison of two components"></div></section>'
    )


def _head(words: str, key: str, kind: str = "") -> str:
    return (
        f'<th scope="col" class="{kind}" data-key="{escape(key)}"><span>{escape(words)}</span></th>'
    )


def _row(shown: Readable, modes: list[ModeRows], names: list[str], r: int) -> str:
    share = float(shown.shares[r])
    cells = [
        f'<td class="number" data-value="{r}"><a href="#component-{r + 1}">{r + 1}</a></td>',
        f'<td data-value="{escape(names[r].lower())}">{escape(names[r])}</td>',
        f'<td class="number" data-value="{share:.6g}">{percent(share)}{_bar(share)}</td>',
    ]
    for rows in modes:
        row, distance = rows.telling(r)
        text = rows.text_of(row)
        short = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        far = 1.0 - math.exp(-distance)
        said = escape(short) if far > rows.LITTLE else '<span class="even">as overall</span>'
        cells.append(f'<td data-value="{far:.4g}" title="{escape(text)}">{said}{_bar(far)}</td>')
    return f'<tr data-component="{r}">{"".join(cells)}</tr>'


def _bar(share: float) -> str:
    return (
        '<svg class="bar mini" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="4"/>'
        f'<rect class="fill" width="{100 * share:.1f}" height="4"/></svg>'
    )
