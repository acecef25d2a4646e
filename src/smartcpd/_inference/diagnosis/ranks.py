"""Checks whether fewer components would do, or more are needed."""

from __future__ import annotations

from collections.abc import Iterator

from smartcpd._fitting.answers.diagnosis import Finding, Severity
from smartcpd._inference.diagnosis.case import Case
from smartcpd._inference.rank_check.verdict import Suits


def compared(case: Case) -> bool:
    """Whether the rank was compared with others."""
    return case.rank is not None and case.rank.suits is not Suits.UNKNOWN


def unsuitable(case: Case) -> Iterator[Finding]:
    """Report a rank that held-out cells speak against."""
    verdict = case.rank
    assert verdict is not None
    if verdict.suits not in (Suits.LOW, Suits.HIGH):
        return
    yield Finding(
        f"rank {verdict.suits}",
        Severity.WARNING,
        verdict.brief,
        f"{verdict.headline} {verdict.named_surplus()}".strip(),
        verdict.advice,
        {
            "rank": verdict.rank,
            "better": verdict.better,
            "explained": verdict.explained,
            "better_explained": verdict.better_explained,
            "surplus": list(verdict.surplus),
        },
    )
