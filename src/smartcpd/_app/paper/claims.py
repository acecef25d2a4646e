"""The table of the paper's claims, next to what our runs of the experiments show."""

from __future__ import annotations

import csv
from pathlib import Path

from smartcpd._app.paper import lines
from smartcpd._app.paper.claim import Evidence
from smartcpd._app.paper.claimed import CLAIMS
from smartcpd._app.paper.tables import Table
from smartcpd.errors import InvalidDataError

FILE = "claims.csv"
NOT_KEPT = "runs not kept"


def collected(out: Path) -> Table:
    """Return every claim with its two findings, the experiment last.

    Where the runs of an experiment are not there, what an earlier table of the folder found stays,
    and is marked.
    """
    seen = {name: Evidence.of(name, out) for name in {claim.experiment for claim in CLAIMS}}
    earlier = _found_before(out / FILE)
    if not earlier and not any(evidence.was_run for evidence in seen.values()):
        raise InvalidDataError(
            f"{out} holds no runs of any experiment; run one first, such as `smartcpd paper "
            "count`, or name their folder with --out."
        )
    rows = []
    for claim in CLAIMS:
        evidence = seen[claim.experiment]
        if not evidence.was_run and claim.text in earlier:
            rows.append(
                [claim.text, claim.paper, *earlier[claim.text], claim.why, claim.experiment]
            )
            continue
        found, verdict = evidence.verdict(claim, lines.published)
        best, against_best = evidence.verdict(claim, lines.tuned)
        said = [claim.text, claim.paper, verdict, against_best, found, best]
        rows.append([*said, claim.why, claim.experiment])
    header = ["claim of the paper", "paper", "as the paper set it up", "against tuned rivals"]
    header += ["our figures, as published", "our figures, tuned", "why", "experiment"]
    note = (
        "Computed from the raw runs (runs.csv.gz) of each experiment, by medians over trials "
        "unless it says otherwise. Seconds are ours on one thread, the paper's are MATLAB's on "
        "another machine: only ratios can be compared."
    )
    return Table("claims", "The paper's claims and our runs", header, rows, note)


def _found_before(path: Path) -> dict[str, list[str]]:
    """Return verdicts and findings of an earlier table by claim; none where there is no table."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    return {row[0]: [*row[2:4], *map(_marked, row[4:6])] for row in rows}


def _marked(finding: str) -> str:
    """Return a finding that says of itself that its runs are not there any more."""
    if not finding.endswith("]") or NOT_KEPT in finding:
        return finding
    return f"{finding[:-1]}, {NOT_KEPT}]"
