"""Components that fit nothing, that double each other, or that cancel."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from smartcpd._fitting.answers.diagnosis import Finding, Severity
from smartcpd._inference.diagnosis.case import Case, listed
from smartcpd._strategies.repair import DEAD, SAME, flaws
from smartcpd.losses.base import CERTAIN

CANCELS = 10.0
"""A component so many times as large as the whole model counts as cancelled by others."""
MANY = 0.05
"""A share of certain probabilities among the cells above which they are not the product of a few
large entries.
"""


def dead(case: Case) -> Iterator[Finding]:
    """Components so small that they fit nothing."""
    if all(c.bounded for c in case.problem.constraints):
        return  # where no component can shrink, a small one is as good as any
    found = flaws(case.factors).dead
    if not found or case.model.rank == 1:
        return
    sizes = _sizes(case.factors)
    typical = float(np.median(sizes)) or 1.0
    yield Finding(
        "dead components",
        Severity.WARNING,
        f"{len(found)} of {case.model.rank} components fit nothing",
        f"{_named(case, found)} smaller than {DEAD:g} of the median component: in fact the model "
        f"has a lower rank than {case.model.rank}.",
        f"Use rank={max(case.model.rank - len(found), 1)}, or more starts (n_init=5) to give every "
        "component something to describe.",
        {"components": found, "relative_sizes": (sizes[found] / typical).tolist()},
    )


def duplicate(case: Case) -> Iterator[Finding]:
    """Pairs that are one component split in two."""
    found = flaws(case.factors).twins
    if not found:
        return
    pairs = case.pairs(found)
    yield Finding(
        "duplicate components",
        Severity.WARNING,
        f"components {pairs} are the same",
        f"Components {pairs} are the same but for their size (congruence of {SAME:g} or more): "
        "only their sum means anything.",
        "Use a lower rank, or more starts (n_init=5).",
        {"pairs": [list(pair) for pair in found]},
    )


def diverging(case: Case) -> Iterator[Finding]:
    """Components that grow against each other, or probabilities that go to 0 and 1."""
    pairs = flaws(case.factors).diverging
    grams = np.prod([A.T @ A for A in case.factors], axis=0)
    whole = math.sqrt(max(float(grams.sum()), 0.0))
    largest = float(_sizes(case.factors).max())
    ratio = largest / whole if whole > 0 else math.inf
    if pairs or (largest > 0 and ratio > CANCELS):
        what = f"Components {case.pairs(pairs)}" if pairs else "Components"
        size = f"{ratio:.3g}" if math.isfinite(ratio) else "infinitely many"
        yield Finding(
            "diverging components",
            Severity.WARNING,
            f"{what.lower()} cancel each other",
            f"{what} nearly cancel each other (the largest is {size} times as large as the whole "
            "model): this rank has no best model, and what they show is not in the data.",
            "Use a lower rank, constraint='nonnegative', or a bound such as 'l2-ball(10)'.",
            {"pairs": [list(pair) for pair in pairs], "largest_over_model": ratio},
        )


def separation(case: Case) -> Iterator[Finding]:
    """Probabilities of exactly 0 or 1, as far as numbers go, in more than a few odd cells."""
    share = case.tallies.certain / max(case.tallies.n_cells, 1.0)
    if share <= MANY:
        return
    yield Finding(
        "separation",
        Severity.WARNING,
        f"{share:.0%} of the probabilities have gone to 0 or 1",
        f"The probabilities of {share:.0%} of the cells have gone to 0 or 1 (log-odds beyond "
        f"{CERTAIN:g}): the loss falls for ever as components grow, so that their size means "
        "nothing.",
        "Use a lower rank, or bound the factors, as by constraint='box(-5, 5)' "
        "('box(0, 5)' for odds).",
        {"share": share},
    )


def _sizes(factors: list[np.ndarray]) -> np.ndarray:
    sizes: np.ndarray = np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0)
    return sizes


def _named(case: Case, components: list[int]) -> str:
    names = listed([case.component(r) for r in components])
    return f"Component {names} is" if len(components) == 1 else f"Components {names} are"
