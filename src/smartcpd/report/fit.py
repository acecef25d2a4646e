"""The section about how well the model fits: in words, pictures and tables."""

from __future__ import annotations

import math
from collections.abc import Callable

from smartcpd._data.labels import Mode
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd.quality import Bin, Quality
from smartcpd.report import svg
from smartcpd.report.axes import log_ticks, number_ticks
from smartcpd.report.ranks import headline
from smartcpd.report.text import escape, number, percent, shortened

SIDE, MARGIN, FOOT = 300.0, 52.0, 250.0
CLEARLY_MORE, CLEARLY_LESS = 1.2, 0.8
SHORT = 19


def explained_words(quality: Quality, rank: RankVerdict | None = None) -> str:
    """Say what the share of deviance explained means here, and whether more could be."""
    share = quality.deviance_explained
    if share is None:
        return (
            f"Loss {quality.loss} has no deviance for this data (it is infinite at exact zeros, or "
            "the data is constant), so no share of it can be explained."
        )
    words = (
        f"The model explains {percent(share)} of the deviance: of what separates a model that says "
        "the same for every cell from one that repeats the data."
    )
    if rank is None or rank.suits is Suits.UNKNOWN:
        return f"{words} Whether more could be explained was not found out."
    words += f" {headline(rank)} {rank.named_surplus()}".rstrip()
    best = quality.deviance_attainable
    if rank.suits is Suits.WELL and best is not None and share <= best < 0.9:
        words += (
            f" What is left looks like chance: of data drawn from this model, it would explain "
            f"about {percent(best)}."
        )
    return words


def dispersion_words(quality: Quality) -> str:
    """Say whether the data is over-dispersed, and what to do about it."""
    ratio = quality.scatter
    if ratio is None or quality.dispersion is None:
        return ""
    loss = quality.loss.split("(")[0]
    figures = (
        f"Counts scatter around the model {number(ratio)} times as much as loss {loss} expects, in "
        f"terms of variance (Pearson's χ² over its degrees of freedom is "
        f"{number(quality.dispersion)}; rare cells weigh most in that figure)."
    )
    if ratio > CLEARLY_MORE:
        advice = (
            " They are over-dispersed: events come in bursts that the components do not describe. "
            "Try a higher rank; if it stays, loss negative-binomial(r) allows for it."
        )
    elif ratio < CLEARLY_LESS:
        advice = " That is less than chance alone would give: the rank may be too high."
    else:
        advice = " That is what chance alone would give: nothing to do."
    return figures + advice


def figures(quality: Quality) -> dict[str, str]:
    """Return the numbers behind the words."""
    shown = {
        "mean loss of the model": number(quality.mean_loss, 5),
        "of the best constant": number(quality.constant_loss, 5),
        "of repeating the data": number(quality.saturated_loss, 5),
    }
    if quality.mean_loss_error:
        shown["standard error of the first"] = number(quality.mean_loss_error, 2)
    if quality.dispersion is not None:
        shown["χ² over degrees of freedom"] = number(quality.dispersion)
    return shown


def calibration_picture(quality: Quality) -> str:
    """Draw predicted against observed means, which are the same on the diagonal."""
    bins = [b for b in quality.calibration if math.isfinite(b.predicted + b.observed)]
    if len(bins) < 2:
        return (
            '<p class="small">All predictions are about the same; there is nothing to compare.</p>'
        )
    logarithmic = quality.data == "counts" and min(min(b.predicted, b.observed) for b in bins) > 0
    scale = math.log10 if logarithmic else float
    values = [v for b in bins for v in (b.predicted, b.observed)]
    low, high = scale(min(values)), scale(max(values))
    room = 0.06 * (high - low) or 1.0
    low, high = low - room, high + room

    def place(value: float) -> float:
        return (scale(value) - low) / (high - low) * (FOOT - 12.0)

    ends = (10.0**low, 10.0**high) if logarithmic else (low, high)
    ticks = (log_ticks if logarithmic else number_ticks)(ends[0], ends[1], 4)
    parts = []
    for value in ticks:
        at, text = place(value), number(value, 2)
        parts.append(svg.line(MARGIN, FOOT - at, SIDE, FOOT - at, "grid"))
        parts.append(svg.text(MARGIN - 7, FOOT - at + 4, text, "tick", "end"))
        parts.append(svg.text(MARGIN + at, FOOT + 16, text))
    parts.append(svg.line(MARGIN, FOOT, MARGIN + FOOT - 12, 12, "diagonal"))
    for b in bins:
        parts.append(_point(b, place, *ends))
    parts.append(svg.text((MARGIN + SIDE) / 2, FOOT + 34, "predicted mean"))
    parts.append(
        f'<text class="tick" text-anchor="middle" transform="translate(11 {FOOT / 2 + 6:.0f}) '
        'rotate(-90)">observed mean</text>'
    )
    return svg.picture(SIDE + 6, FOOT + 40, parts, _calibration_label(bins), "chart square")


def _point(b: Bin, place: Callable[[float], float], lowest: float, highest: float) -> str:
    x, y = MARGIN + place(b.predicted), FOOT - place(b.observed)
    # Whiskers of bins with few cells would leave the picture.
    down, up = max(b.observed - 2 * b.error, lowest), min(b.observed + 2 * b.error, highest)
    words = (
        f"{number(b.cells)} cells: predicted {number(b.predicted)}, observed {number(b.observed)}"
    )
    bar = svg.line(x, FOOT - place(down), x, FOOT - place(max(up, down)), "whisker")
    return (
        f'{bar}<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4">'
        f"<title>{escape(words)}</title></circle>"
    )


def _calibration_label(bins: list[Bin]) -> str:
    worst = max(abs(b.observed - b.predicted) / max(b.error, 1e-300) for b in bins)
    return (
        f"Predicted and observed means of {len(bins)} groups of cells; the largest difference is "
        f"{number(worst, 2)} standard errors"
    )


def hot_cells_table(quality: Quality, modes: tuple[Mode, ...]) -> str:
    """Write a table of the cells with the largest residuals, by name."""
    if not quality.hot_cells:
        return '<p class="small">No cell differs from what the model expects.</p>'
    rows = []
    for cell in quality.hot_cells:
        labels = [_label(mode, i) for mode, i in zip(modes, cell.index, strict=True)]
        residual = f"{cell.residual:+.1f}".replace("-", "\u2212")
        rows.append(_row(labels, number(cell.observed), number(cell.expected), residual))
    names = [mode.name for mode in modes]
    caption = "Cells that differ most from what the model expects"
    return _table(names, "residual", rows, caption)


def hot_slices_table(quality: Quality, modes: tuple[Mode, ...]) -> str:
    """Write a table of the rows of modes with the worst fit, by name."""
    if not quality.hot_slices:
        return '<p class="small">No row of any mode fits clearly worse than the others.</p>'
    rows = []
    for s in quality.hot_slices:
        labels = [modes[s.mode].name, _label(modes[s.mode], s.index)]
        rows.append(_row(labels, number(s.observed), number(s.expected), f"{s.spread:.2f}×"))
    caption = "Rows whose cells scatter more around the model than others"
    return _table(["mode", "row"], "scatter", rows, caption)


def _table(names: list[str], difference: str, rows: list[str], caption: str) -> str:
    """Write a table of what is named, observed and expected, and of how the last two differ."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    for name in ("observed", "expected", difference):
        heads += f'<th scope="col" class="number">{name}</th>'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(labels: list[str], *numbers: str) -> str:
    """Write a row of a table; short labels such as dates stay on one line."""
    cells = [
        f"<td{' class=short' if len(label) <= SHORT else ''}>{escape(label)}</td>"
        for label in labels
    ]
    cells += [f'<td class="number">{number}</td>' for number in numbers]
    return f"<tr>{''.join(cells)}</tr>"


def _label(mode: Mode, row: int) -> str:
    return shortened(mode.text([row])[0])
