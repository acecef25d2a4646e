"""The section about what may be wrong with the fit."""

from __future__ import annotations

from smartcpd._inference.diagnosis import Diagnosis, Finding, Severity
from smartcpd.report.text import escape, joined, with_code


def link(diagnosis: Diagnosis | None) -> str:
    """Write the link from the top of the page to the section."""
    return "" if diagnosis is None else '<a href="#checks">Checks</a>'


def verdict(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return the verdict in a word or two, and what it is about."""
    warnings = [f.name for f in diagnosis if f.severity is Severity.WARNING]
    if not warnings:
        return "Passed", f"{len(diagnosis.checked)} questions asked"
    return f"{len(warnings)} warning{'s' * (len(warnings) != 1)}", joined(warnings)


def section(diagnosis: Diagnosis | None) -> str:
    """Write a panel for each finding, or a sentence that there is none."""
    if diagnosis is None:
        return ""
    panels = "<p>Nothing wrong was found.</p>"
    if diagnosis.findings:
        panels = f'<div class="findings">{"".join(map(_panel, diagnosis))}</div>'
    words = f"Looked for: {joined(list(diagnosis.checked))}."
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
        f"<p>{with_code(finding.meaning)}</p><p><b>What to do.</b> {with_code(finding.advice)}</p>"
        "</section>"
    )
