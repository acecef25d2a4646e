"""The whole page, put together from its sections."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from smartcpd._fitting.consensus import Stability
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import Readable
from smartcpd._inference.diagnosis import Diagnosis
from smartcpd._inference.rank_check.verdict import RankVerdict
from smartcpd._problem.history import History, Status
from smartcpd.quality import Quality
from smartcpd.report import checks, fit, naming, ranks, repeat
from smartcpd.report.cards import component_cards, share_bar, titles
from smartcpd.report.convergence import loss_curve
from smartcpd.report.overview import FEWEST, comparison, overview
from smartcpd.report.pictures import positions, shape_of
from smartcpd.report.rows import ModeRows, kept_rows
from smartcpd.report.text import embedded, escape, joined, number, percent

SCRIPTS = ("page.js", "lists.js", "explore.js", "saving.js")


def render(
    shown: Readable,
    history: History | None,
    status: Status | None,
    quality: Quality | None,
    settings: Mapping[str, Any],
    notes: Sequence[str],
    command: str | None,
    title: str | None,
    stability: Stability | None = None,
    diagnosis: Diagnosis | None = None,
    rank: RankVerdict | None = None,
    given: Mapping[int, str] | None = None,
    selection: Mapping[str, Any] | None = None,
) -> str:
    """Return the page as text."""
    model = shown.model
    modes = kept_rows(shown)
    names = naming.with_given(titles(shown, modes), given or {})
    said = [rows.mode.name for rows in modes]
    heading = title or " × ".join(said)
    style = _file("style.css")
    script = f'"use strict";\n(() => {{\n{"".join(map(_file, SCRIPTS))}}})();\n'
    data = embedded(_data(shown, modes, names))
    return Template(_file("page.html")).substitute(
        policy=_policy(style, script),
        title=escape(heading),
        style=style,
        script=script,
        data=data,
        facts=_facts(model, quality),
        summary=escape(_summary(said, shown, names[0], quality, rank)),
        tiles=_tiles(status, quality, history, diagnosis, rank),
        shares=share_bar(shown, names),
        overview=overview(shown, modes, names),
        comparison=comparison() if model.rank >= FEWEST else "",
        selection=ranks.section(selection),
        share_words=escape(_share_words(shown)),
        kept=_kept_note(modes),
        cards=component_cards(shown, modes, names, stability),
        checks=checks.section(diagnosis),
        checks_link=checks.link(diagnosis),
        fit=_fit_section(model, history, status, quality, rank),
        notes=_notes(notes),
        repeat=_repeat_section(model, settings, command),
        modes=escape(joined(said)),
    )


def _file(name: str) -> str:
    return resources.files("smartcpd.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return a security policy: nothing is loaded, and only this page's own script runs."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; img-src blob:; base-uri 'none'; form-action 'none'"
    )


def _data(shown: Readable, modes: list[ModeRows], names: list[str]) -> dict[str, Any]:
    described = []
    for rows in modes:
        entry = rows.described() | {"shape": shape_of(rows.mode)}
        if entry["shape"] == "curve":
            places, _ = positions(rows)
            entry["places"] = places[rows.kept].tolist()
        described.append(entry)
    return {
        "signed": shown.signed,
        "rank": shown.model.rank,
        "shares": [float(f"{share:.4g}") for share in shown.shares],
        "titles": names,
        "modes": described,
    }


def _facts(model: CPModel, quality: Quality | None) -> str:
    facts = [" × ".join(f"{size:,}" for size in model.shape), f"rank {model.rank}"]
    if model.loss_function is not None:
        facts.append(f"loss {model.loss_function}")
    if model.exposure is not None:
        facts.append(model.exposure.words)
    if quality is not None:
        facts.append(f"{quality.cells:,} cells")
        if quality.nonzeros < quality.cells:
            facts.append(f"{quality.nonzeros:,} nonzeros")
    return "".join(f"<li>{escape(fact)}</li>" for fact in facts)


def _summary(
    said: list[str],
    shown: Readable,
    first: str,
    quality: Quality | None,
    rank: RankVerdict | None,
) -> str:
    model, names = shown.model, joined(said)
    count = "One component describes" if model.rank == 1 else f"{model.rank} components describe"
    words = f"{count} how {names} go together."
    if model.rank > 1:
        share = percent(float(shown.shares[0]))
        words += f" The largest, {first}, makes up {share} of the {shown.share_of}."
    if quality is not None and quality.deviance_explained is not None:
        together = "It explains" if model.rank == 1 else "Together they explain"
        words += f" {together} {percent(quality.deviance_explained)} of the deviance."
    if rank is not None and rank.headline:
        words += f" {ranks.headline(rank)}"
    return words


def _tiles(
    status: Status | None,
    quality: Quality | None,
    history: History | None,
    diagnosis: Diagnosis | None,
    rank: RankVerdict | None,
) -> str:
    tiles = []
    if quality is not None and quality.deviance_explained is not None:
        under = "of what a constant leaves open"
        tiles.append(("Deviance explained", percent(quality.deviance_explained), under))
    if rank is not None and rank.headline:
        tiles.append(("Rank", *ranks.verdict(rank)))
    if quality is not None and quality.scatter is not None:
        under = "as expected" if 0.8 <= quality.scatter <= 1.2 else "1 would be chance alone"
        tiles.append(("Scatter of counts", f"{quality.scatter:.2f}×", under))
    if quality is not None:
        constant = number(quality.constant_loss, 4)
        tiles.append(("Mean loss", number(quality.mean_loss, 4), f"a constant has {constant}"))
    if status is not None:
        word = _ending(status)
        seconds = history[-1].time if history else None
        tiles.append(("Fit", word, f"in {_duration(seconds)}" if seconds else "see below"))
    if diagnosis is not None:
        tiles.append(("Checks", *checks.verdict(diagnosis)))
    return "".join(
        f"<div><dt>{escape(name)}</dt>"
        f"<dd><b>{escape(value)}</b> <span>{escape(under)}</span></dd></div>"
        for name, value, under in tiles
    )


def _ending(status: Status) -> str:
    """Say in a word or two how a fit ended, as its sentence does in full."""
    if status.interrupted:
        return "Interrupted"
    if not status.converged:
        return "Stopped"
    return "Not confirmed" if status.found == 1 else "Converged"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{number(seconds, 2)} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"


def _share_words(shown: Readable) -> str:
    several = shown.model.rank > 1
    order = (
        "Largest first, each named after what sets it apart from the others. " if several else ""
    )
    if shown.signed:
        part = "A component’s share is its part of the norms of all components. " if several else ""
        return (
            f"{order}{part}Entries are relative to the largest of their column; orange ones are "
            "negative."
        )
    part = "A component’s share is its part of everything the model expects. " if several else ""
    lift = (
        " The tick on a bar marks the label’s share in all components together; 3× is three times "
        "that."
    )
    return (
        f"{order}{part}Percentages of rows are parts of their component; 1× in a line is what "
        f"every row would have if all had the same.{lift if several else ''}"
    )


def _kept_note(modes: list[ModeRows]) -> str:
    cut = [rows for rows in modes if not rows.complete]
    if not cut:
        return ""
    parts = joined(
        [f"{rows.kept.size:,} of {len(rows.mode):,} rows of {rows.mode.name}" for rows in cut]
    )
    return (
        f'<p class="small">This page holds {escape(parts)}: those that matter most to a component. '
        "The model’s files have all of them.</p>"
    )


def _fit_section(
    model: CPModel,
    history: History | None,
    status: Status | None,
    quality: Quality | None,
    rank: RankVerdict | None,
) -> str:
    panels = []
    if quality is not None:
        words = [fit.explained_words(quality, rank), fit.dispersion_words(quality)]
        if quality.sampled:
            words.append(
                "The cells are too many to visit each. Of sparse data every nonzero was read; what "
                f"is said of the others rests on {quality.sampled_cells:,} cells drawn at random, "
                "the same ones each time."
            )
        text = "".join(f"<p>{escape(w)}</p>" for w in words if w)
        text += repeat.settings_table(fit.figures(quality))
        panels.append(_panel("How much is explained", text, "text"))
        under = _calibration_words(quality)
        panels.append(_panel("Calibration", fit.calibration_picture(quality) + under))
    if history is not None or status is not None:
        curve = loss_curve(history) if history else ""
        ending = f'<p class="small">{escape(str(status))}</p>' if status is not None else ""
        panels.append(_panel("Loss above its best, during the fit", curve + ending))
    if quality is not None:
        modes = naming.named(model.named_modes)
        cells, rows = fit.hot_cells_table(quality, modes), fit.hot_slices_table(quality, modes)
        panels.append(_panel("Where it fits worst: cells", cells, "wide"))
        panels.append(_panel("Where it fits worst: rows", rows))
    if not panels:
        return '<p class="small">Nothing was measured about the fit.</p>'
    return f'<div class="panels">{"".join(panels)}</div>'


def _calibration_words(quality: Quality) -> str:
    what = {"counts": "count", "probabilities": "probability"}.get(quality.data, "value")
    return (
        f'<p class="small">Each point gathers cells of which the model expects about the same '
        f"{what}. On the line it is right on average; whiskers are two standard errors.</p>"
    )


def _panel(heading: str, content: str, kind: str = "") -> str:
    return f'<section class="panel {kind}"><h3>{escape(heading)}</h3>{content}</section>'


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        '<section aria-labelledby="notes"><h2 id="notes">Notes</h2>'
        f'<ul class="notes">{items}</ul></section>'
    )


def _repeat_section(model: CPModel, settings: Mapping[str, Any], command: str | None) -> str:
    parts = []
    if command:
        parts.append(repeat.code_block("On the command line", command))
    loss = None if model.loss_function is None else str(model.loss_function)
    code = repeat.python_code(settings, model.rank, loss, model.exposure)
    parts.append(repeat.code_block("In Python", code))
    if settings:
        parts.append(f"<h3>Settings</h3>{repeat.settings_table(settings)}")
    parts.append(f"<h3>Versions</h3>{repeat.settings_table(repeat.versions())}")
    return "".join(parts)
