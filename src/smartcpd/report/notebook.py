"""What a notebook shows of a model and of what is known of it: small, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Mode
from smartcpd._data.storage import SparseTensor
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.ranking import largest
from smartcpd._fitting.shares import readable
from smartcpd._inference.diagnosis import Diagnosis
from smartcpd._inference.intervals import Intervals
from smartcpd._inference.selection import Selection
from smartcpd._problem.history import History
from smartcpd.quality import Quality
from smartcpd.report.naming import named
from smartcpd.report.pictures import shape_of
from smartcpd.report.sparks import bar, curve, heights, whisker
from smartcpd.report.text import escape, number, percent, with_code

MOST = 12
"""Number of components, findings or rows that are shown; the rest is counted."""
CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:middle;border:0;background:none"
LABEL = 22


@singledispatch
def shown_in_notebook(thing: Any) -> str:
    """Return HTML about a result: a sentence, and a small table with pictures.

    Colours are those of the notebook's own text, and one blue that can be seen on white and on
    black.
    """
    raise TypeError(f"{type(thing).__name__} has no picture.")


def panel(heading: str, *parts: str) -> str:
    """Put parts under a heading."""
    return (
        '<div style="max-width:60em;overflow-x:auto;font-size:90%">'
        f"<p style='margin:0 0 .4em'><b>{escape(heading)}</b></p>{''.join(parts)}</div>"
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], more: int = 0) -> str:
    """Write a table; cells are HTML already."""
    top = "".join(f'<th style="{CELL};opacity:.7">{escape(head)}</th>' for head in heads)
    lines = "".join(
        f"<tr>{''.join(f'<td style={chr(34)}{CELL}{chr(34)}>{c}</td>' for c in row)}</tr>"
        for row in rows
    )
    rest = sentence(f"... and {more:,} more") if more else ""
    style = "border-collapse:collapse;border:0;margin:0"
    return (
        f'<table style="{style}"><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>{rest}'
    )


def sentence(text: str) -> str:
    """Write a paragraph."""
    return f"<p style='margin:.3em 0'>{escape(text)}</p>"


def counted(count: int, what: str) -> str:
    """Write a number with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def extent(modes: Sequence[Mode]) -> str:
    """Write the names and lengths of modes."""
    return " × ".join(f"{mode.name} {len(mode):,}" for mode in named(modes))


@shown_in_notebook.register
def _(model: CPModel) -> str:
    loss = "" if model.loss_function is None else f", loss {model.loss_function}"
    heading = f"{counted(model.rank, 'component')} of {extent(model.named_modes)}{loss}"
    return panel(heading, components(model))


def components(model: CPModel, stability: Sequence[float] | None = None) -> str:
    """Draw the largest components, a row each: share, and every mode in small."""
    shown = readable(model)
    modes = named(model.named_modes)
    heads = ["", "share", *([] if stability is None else ["stability"]), *(m.name for m in modes)]
    rows = []
    for r in range(min(model.rank, MOST)):
        place = int(shown.order[r])
        share = float(shown.shares[r])
        row = [f"<b>{place + 1}</b>", _beside(bar(share), percent(share))]
        if stability is not None:
            row.append(_beside(bar(stability[place]), f"{stability[place]:.2f}"))
        columns = (A[:, r] for A in shown.model.factors)
        row += [
            _mode(mode, column, shown.signed) for mode, column in zip(modes, columns, strict=True)
        ]
        rows.append(row)
    return table(heads, rows, model.rank - len(rows))


def _mode(mode: Mode, column: np.ndarray, signed: bool) -> str:
    """Draw a column in small; names are written, since a picture of them says nothing."""
    if shape_of(mode) != "bars":
        peak = mode.text([int(np.abs(column).argmax())])[0]
        draw = curve if shape_of(mode) == "curve" else heights
        return f'{draw(column)}<br><span style="opacity:.7">{escape(_short(peak))}</span>'
    worth = [(label, value) for label, value in largest(mode, column, 3) if value]
    texts = {label: mode.text([int(mode.rows(label))])[0] for label, _ in worth}
    figure = "{:+.2g}" if signed else "{:.0%}"
    return "<br>".join(
        f"{escape(_short(texts[label]))} <span style='opacity:.7'>{figure.format(value)}</span>"
        for label, value in worth
    )


def _beside(picture: str, figure: str) -> str:
    return f'<span style="white-space:nowrap">{picture} {escape(figure)}</span>'


def _short(text: str) -> str:
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


@shown_in_notebook.register
def _(tensor: LabelledTensor) -> str:
    rows = []
    for mode in tensor.modes:
        some = ", ".join(map(_short, mode.text(np.arange(min(4, len(mode))))))
        last = f", ... {_short(mode.text([-1])[0])}" if len(mode) > 4 else ""
        rows.append([escape(mode.name), f"{len(mode):,}", str(mode.kind), escape(some + last)])
    parts = [table(["mode", "rows", "kind", "labels"], rows), _values(tensor.tensor)]
    notes = [sentence(note) for note in tensor.notes[:MOST]]
    return panel(f"Tensor of {extent(tensor.modes)}", *parts, *notes)


@shown_in_notebook.register
def _(tensor: SparseTensor) -> str:
    shape = " × ".join(f"{size:,}" for size in tensor.shape)
    return panel(f"Sparse tensor of {shape}", _values(tensor))


def _values(tensor: Any) -> str:
    if isinstance(tensor, np.ndarray):
        return sentence(f"{tensor.size:,} cells, {tensor.dtype}, {tensor.nbytes / 1e6:,.1f} MB")
    return sentence(repr(tensor))


@shown_in_notebook.register
def _(agreed: Consensus) -> str:
    parts = str(agreed).splitlines()
    heading = f"{counted(agreed.rank, 'component')} from {counted(agreed.n_starts, 'start')}"
    own = agreed.model[: agreed.rank]
    return panel(heading, components(own, agreed.stability.tolist()), sentence(parts[-1]))


@shown_in_notebook.register
def _(found: Intervals) -> str:
    model, rows = found.model, []
    for r in range(min(model.rank, MOST)):
        row = [f"<b>{r + 1}</b>"]
        for n, mode in enumerate(named(model.named_modes)):
            i = int(np.abs(model.factors[n][:, r]).argmax())
            ends = (float(found.lower[n][i, r]), float(found.upper[n][i, r]))
            value = float(model.factors[n][i, r])
            words = f"{_short(mode.text([i])[0])}: {number(ends[0])} to {number(ends[1])}"
            row.append(f"{whisker(value, *ends)}<br>{escape(words)}")
        rows.append(row)
    heads = ["", *(f"{mode.name}, its largest" for mode in named(model.named_modes))]
    words = f"{found.level:.0%} intervals ({found.method}) of {extent(model.named_modes)}"
    return panel(words, table(heads, rows, model.rank - len(rows)))


@shown_in_notebook.register
def _(quality: Quality) -> str:
    figures = [
        ("mean loss", number(quality.mean_loss, 6)),
        ("deviance explained", _share(quality.deviance_explained)),
        ("attainable", _share(quality.deviance_attainable)),
        ("dispersion", number(quality.dispersion)),
        ("cells", f"{quality.cells:,}"),
        ("of those not zero", f"{quality.nonzeros:,}"),
    ]
    rows = [[escape(name), escape(value)] for name, value in figures if value not in ("–", "")]
    return panel(repr(quality), table(["", ""], rows))


def _share(value: float | None) -> str:
    return "" if value is None else percent(value)


@shown_in_notebook.register
def _(diagnosis: Diagnosis) -> str:
    rows = [
        [f"<b>{escape(f.severity)}</b>", escape(f.name), with_code(f"{f.meaning} {f.advice}")]
        for f in diagnosis.findings[:MOST]
    ]
    found = table(["", "", ""], rows, len(diagnosis) - len(rows)) if rows else ""
    return panel(repr(diagnosis), found, sentence(f"Checked: {', '.join(diagnosis.checked)}."))


@shown_in_notebook.register
def _(selection: Selection) -> str:
    best = max((row.behind for row in selection.rows), default=0.0)
    rows = [
        [
            f"<b>{escape(row.loss)}</b>" if row.chosen else escape(row.loss),
            f"<b>{row.rank}</b>" if row.chosen else str(row.rank),
            _beside(bar(row.behind / best if best > 0 else 0.0), number(row.behind)),
            number(row.behind_error, 2),
            "" if row.replicability is None else f"{row.replicability:.2f}",
        ]
        for row in selection.rows
    ]
    heads = ["loss", "rank", "behind the best", "±", "replicability"]
    return panel(repr(selection), table(heads, rows), sentence(selection.recommendation))


@shown_in_notebook.register
def _(history: History) -> str:
    if not len(history):
        return panel(repr(history))
    above = history.objective - np.nanmin(history.objective)
    least = above[above > 0].min() if (above > 0).any() else 1.0
    drawn = curve(np.log10(np.maximum(above, least)), width=240, height=48, from_zero=False)
    return panel(repr(history), drawn, sentence("the loss above its best, logarithmic"))
