"""What the runs of a fit say together about the solution that was chosen, in one sentence.

A solution counts as found again only by a run that has nothing in common with the first: no start,
no compressed tensor, no sample of the data and no parent. Such runs end at the same loss by chance
now and then; so their components are compared, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._common.factors import SAME, best_pairs, unit_columns
from smartcpd._problem.history import Finding

SAME_LOSS, ROUNDING = 0.05, 1e-7
"""Two losses are the same if they differ by less than this share of the resolution, or of their
size."""
DIFFERENT = 0.7
"""A component whose counterpart is no more alike than this, by the product of their cosines, is
another one."""
TOLD_APART = 1.0
"""Number of standard errors between the losses of two solutions from which on the data decides for
one."""
ADVICE = "compare fits with other seeds, or with n_init=5"
ALONE = Finding(
    f"Not confirmed: a single run led to it, so a better solution may exist; {ADVICE}.", 1
)
CHANGED = Finding(
    "Not confirmed: the last steps replaced some of the components that the runs had found, so a "
    f"better solution may exist; {ADVICE}.",
    1,
)


@dataclass(frozen=True)
class Run:
    """A run: the solution at which it ended, and the starts that it came from."""

    factors: Sequence[np.ndarray]
    loss: float
    """The mean loss, with penalties."""
    settled: bool
    """Whether it ended because nothing was left to gain."""
    origins: frozenset[str]
    """Names of all that its end depends on besides the data as a whole: "start 3", "a compressed
    tensor", "a sample"; of a run that was bred, those of its parents. Two runs with a name in
    common are not independent."""

    def is_independent_of(self, other: Run) -> bool:
        return self.origins.isdisjoint(other.origins)


Error = Callable[[Run, Run], float]
"""The standard error of the difference between the losses of two runs (Vuong, 1989)."""


@dataclass(frozen=True)
class Findings:
    """The runs of a fit, one of which was chosen."""

    runs: Sequence[Run]
    chosen: Run
    resolution: float
    """The distance by which noise alone moves the lowest loss."""
    error: Error
    needed: int = 2
    """Number of independent runs that must have found a solution before it counts as found."""
    same_loss: float = SAME_LOSS
    """The share of the resolution by which losses may differ and still be the same."""

    @property
    def found(self) -> list[Run]:
        """Runs that ended with the chosen components at the chosen loss, each independent of the
        others; the chosen one may be among them."""
        # Runs that come from little share the least with others.
        same = sorted(self._same, key=lambda run: len(run.origins))
        return max((_independent([first, *same]) for first in same), key=len)

    @property
    def confirmed(self) -> bool:
        """Whether enough independent runs found the chosen solution."""
        return len(self.found) >= self.needed

    @property
    def rivals(self) -> list[Run]:
        """Runs that ended with other components, and that the data does not decide against."""
        return [
            run
            for run in self.runs
            if run is not self.chosen
            and run.settled
            and run.loss - self.chosen.loss <= TOLD_APART * self.error(run, self.chosen)
            and n_different(run.factors, self.chosen.factors) > 0
        ]

    @property
    def told(self) -> Finding:
        """Return the sentence that the runs justify, and nothing more."""
        found = len(self.found) if self.confirmed else 1
        return Finding(f"{self._first_sentence} {self._second_sentence}".strip(), found)

    @property
    def _first_sentence(self) -> str:
        n = len(self.runs)
        if n == 1:
            return ALONE.sentence
        found = self.found
        if self.confirmed:
            return (
                f"Found independently by {len(found)} of {n} runs: the same components at the same "
                "loss."
            )
        same = self._same
        if len(found) > 1:
            why = f"{len(found)} of {n} runs ended with these components, and with so little data "
            why += f"for each parameter it takes {self.needed} to tell a find from chance"
        elif len(same) > 1:
            names = [name for run in same for name in run.origins]
            shared = sorted({name for name in names if names.count(name) > 1})
            why = f"{len(same)} of {n} runs ended with these components, but they share "
            why += " and ".join(filter(None, [", ".join(shared[:-1]), *shared[-1:]]))
        elif n - 1 == 1:
            why = "the other run did not end with these components at this loss"
        else:
            why = f"none of the {n - 1} other runs ended with these components at this loss"
        return f"Not confirmed: {why}, so a better solution may exist; {ADVICE}."

    @property
    def _second_sentence(self) -> str:
        rivals = self.rivals
        if not rivals:
            return ""
        apart = [n_different(run.factors, self.chosen.factors) for run in rivals]
        least, most = min(apart), max(apart)
        differing = f"{least}" if least == most else f"{least} to {most}"
        return (
            f"The data does not decide: {len(rivals)} of {len(self.runs)} runs ended with "
            f"{differing} of {self.chosen.factors[0].shape[1]} components different, their losses "
            "apart by less than the standard error. Trust what they have in common (n_init=5, "
            "consensus=True), or use a lower rank."
        )

    @property
    def _same(self) -> list[Run]:
        return [run for run in self.runs if self._is_the_same(run)]

    def _is_the_same(self, run: Run) -> bool:
        if run is self.chosen:
            return True
        margin = self.same_loss * self.resolution + ROUNDING * abs(self.chosen.loss)
        return (
            run.settled
            and abs(run.loss - self.chosen.loss) <= margin
            and n_different(run.factors, self.chosen.factors, SAME) == 0
        )


def _independent(runs: Sequence[Run]) -> list[Run]:
    """Return the first run, and those after it that share nothing with those before."""
    chosen: list[Run] = []
    for run in runs:
        if all(run.is_independent_of(other) for other in chosen):
            chosen.append(run)
    return chosen


def n_different(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], least: float = DIFFERENT
) -> int:
    """Return how many components of one model have no counterpart in another, in any size and
    order; counterparts are alike by a product of cosines of ``least`` or more.
    """
    pairs = zip(first, second, strict=True)
    cosines = np.prod([unit_columns(A)[0].T @ unit_columns(B)[0] for A, B in pairs], axis=0)
    if not np.isfinite(cosines).all():
        return len(cosines)
    return int((cosines[best_pairs(cosines)] < least).sum())
