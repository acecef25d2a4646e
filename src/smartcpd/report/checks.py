"""The section about what may be wrong with the fit."""

from __future__ import annotations

from smartcpd._inference.diagnosis import Diagnosis, Finding, Severity
from smartcpd.report.text import escape, joined


def link(diagnosis: Diagnosis | None) -> str:
    """Write the link from the top of the page to the section."""
    return "" if diagnosis is None else '<a href="#checks">Checks</a>'


def tile(diagnosis: Diagnosis | None) -> str:
    """Write the verdict as one of the figures at the beginning."""
    if diagnosis is None:
        return ""
    warnings = [f.name for f in diagnosis if f.severity is Severity.WARNING]
    verdict = f"{len(warnings)} warning{'s' * (len(warnings) != 1)}" if warnings else "Passed"
    under = joined(warnings) if warnings else f"{len(diagnosis.checked)} questions asked"
    return (
        f"<div><dt>Checks</dt><dd><b>{escape(verdict)}</b> <span>{escape(under)}</span></dd></div>"
    )


def section(diagnosis: Diagnosis | None) -> str:
    """Write a panel for each finding, or a sentence that there is none."""
    if diagnosis is None:
        return ""
    panels = "".join(map(_panel, diagnosis))
    if not panels:
        panels = "<p>Nothing wrong was found.</p>"
    else:
        panels = f'<div class="findings">{panels}</div>'
    words = f"Looked for: {joined(list(diagnosis.checked))}."
    if diagnosis.findings and diagnosis.first == 0:
        words += " Components are named by their columns, as at the foot of their cards."
    if diagnosis.sampled_cells:
        words += f" Based in part on a sample of {diagnosis.sampled_cells:,} cells."
    return (
        '<section aria-labelledby="checks"><h2 id="checks" tabindex="-1">Checks</h2>'
        f'{panels}<p class="small">{escape(words)}</p></section>'
    )


def _panel(finding: Finding) -> str:
    severity = escape(finding.severity)
    return (
        f'<section class="panel finding {severity}"><h3>{escape(finding.name.capitalize())} '
        f'<span class="severity">{severity}</span></h3>'
        f"<p>{escape(finding.meaning)}</p><p><b>What to do.</b> {escape(finding.advice)}</p>"
        "</section>"
    )
