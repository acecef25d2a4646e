"""The table of the paper's claims, next to what our runs of the experiments show."""

from __future__ import annotations

from pathlib import Path

from smartcpd._app.paper import lines
from smartcpd._app.paper.claim import Evidence
from smartcpd._app.paper.claimed import CLAIMS
from smartcpd._app.paper.tables import Table
from smartcpd.errors import InvalidDataError


def collected(out: Path) -> Table:
    """Return every claim with its two findings, the experiment last."""
    seen = {name: Evidence.of(name, out) for name in {claim.experiment for claim in CLAIMS}}
    if not any(evidence.was_run for evidence in seen.values()):
        raise InvalidDataError(
            f"{out} holds no runs of any experiment; run one first, such as `smartcpd paper "
            "count`, or name their folder with --out."
        )
    rows = []
    for claim in CLAIMS:
        evidence = seen[claim.experiment]
        found, verdict = evidence.verdict(claim, lines.published)
        best, against_best = evidence.verdict(claim, lines.tuned)
        said = [claim.text, claim.paper, verdict, against_best, found, best]
        rows.append([*said, claim.why, claim.experiment])
    header = ["claim of the paper", "paper", "as the paper set it up", "against tuned rivals"]
    header += ["our figures, as published", "our figures, tuned", "why", "experiment"]
    note = (
        "Computed from the raw runs (runs.csv) of each experiment, by medians over trials unless "
        "it says otherwise. Seconds are ours on one thread, the paper's are MATLAB's on another "
        "machine: only ratios can be compared."
    )
    return Table("claims", "The paper's claims and our runs", header, rows, note)
