"""A claim of the paper, and the evidence that our runs are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from smartcpd._app.paper import lines
from smartcpd._app.paper.findings import Finding, Judge, Variant
from smartcpd._app.paper.runs import Runs

VERDICTS = {True: "agrees", False: "does not agree", None: "cannot be told"}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that figures can support or not.

    Attributes
    ----------
    text : str
        What is claimed.
    paper : str
        The paper's figure for it.
    experiment : str
        The experiment whose runs decide.
    judge : callable
        The finding, or None where runs that it needs are missing or the question does not arise.
    why : str
        What explains the outcome; each reason begins with "Measured:" or "Conjecture:".
    """

    text: str
    paper: str
    experiment: str
    judge: Judge
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """The runs of an experiment, and what readers of them must be told."""

    runs: Runs
    marks: tuple[str, ...]

    @classmethod
    def of(cls, experiment: str, out: Path) -> Evidence:
        """Return the runs of an experiment; quick ones only where there are no others."""
        folder, marks = out / experiment, []
        if not (folder / "settings.json").is_file():
            folder, marks = out / f"{experiment}-quick", ["quick run"]
        runs = Runs(folder)
        data = str(runs.settings().get("data", ""))
        if "SIMULATED" in data:
            marks.append("SIMULATED data")
        elif "the paper's covers" in data:
            marks.append("another period than the paper's")
        return cls(runs, tuple(marks))

    @property
    def was_run(self) -> bool:
        return bool(self.runs.settings())

    def verdict(self, claim: Claim, variant: Variant) -> tuple[str, str]:
        """Return what our runs say of a claim, and the verdict; none from simulated data."""
        finding = claim.judge(self.runs, variant) if self.was_run else None
        if finding is None:
            return ("-" if self.was_run else "not run yet"), "-"
        if "SIMULATED data" in self.marks:
            finding = Finding(finding.ours, None)
        marks = [*self._trials(variant), *self.marks]
        mark = f" [{', '.join(marks)}]" if marks else ""
        return finding.ours + mark, VERDICTS[finding.agrees]

    def _trials(self, variant: Variant) -> list[str]:
        """Return how many trials there are of the solvers of a variant, if any."""
        other = lines.TUNED if variant is lines.published else lines.PUBLISHED
        keys = [
            (panel, solver) for panel, _, solver in self.runs.runs if not solver.endswith(other)
        ]
        counts = Counter(keys).values()
        if not counts:
            return []
        least, most = min(counts), max(counts)
        made = f"{least}" if least == most else f"{least} to {most}"
        return [f"{made} trial{'s' if most > 1 else ''}"]
