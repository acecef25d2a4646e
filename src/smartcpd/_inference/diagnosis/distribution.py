"""Whether the data scatters about the model as the loss says."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from smartcpd._fitting.answers.diagnosis import Finding, Severity
from smartcpd._inference.diagnosis.case import Case
from smartcpd._inference.diagnosis.trial import tried

BEYOND_CHANCE = 4.0
"""Number of standard deviations that chance alone reaches once in 30,000 times."""
MORE_SCATTER = 1.1
"""Ratio of squared residuals to what the loss says, from which on it matters in practice."""
SOMETHING, MORE_ZEROS = 1.0, 0.2
"""Zeros matter in cells where at least so much is expected; this share of them must be too many."""
OFF = 0.05
"""The share of the expected events (or non-events) that may be in the wrong place."""
UNLIKELY = 1e-4


def counts(case: Case) -> bool:
    """Whether the data is counts, and so has a variance that the loss knows."""
    return case.tallies.counts is not None


def binary(case: Case) -> bool:
    """Whether the data is yes or no, and the loss knows how such data scatters."""
    return case.tallies.calibration is not None


def over_dispersion(case: Case) -> Iterator[Finding]:
    """Counts that scatter more than the loss allows: a score test against a negative binomial."""
    t = case.tallies
    assert t.counts is not None
    ratio = t.ratio
    if t.scatter.score < BEYOND_CHANCE or ratio < MORE_SCATTER:
        return
    alpha = t.counts.dispersion()
    r = 1.0 / alpha if alpha > 0 else math.inf
    trial = tried(case, "negative-binomial") if math.isfinite(r) else None
    figures = {"scatter": ratio, "score": t.scatter.score, "r": r}
    advice = "Try a higher rank first: structure that the model lacks looks the same."
    if trial is not None and trial.works:
        advice = (
            f"Use loss 'negative-binomial(auto)', which finds r, here about {r:.2g}, for a "
            "variance of mean + mean²/r. If a higher rank makes it vanish, it was structure that "
            "the model lacked."
        )
    elif trial is not None:
        advice += (
            " Loss 'negative-binomial' is no way out: in a short trial its model came to expect "
            f"{trial.growth:.3g} times as much as this one, where there is little."
        )
    yield Finding(
        "over-dispersion",
        Severity.WARNING,
        f"counts scatter {ratio:.3g} times as much as loss '{case.loss}' says"
        + (
            f"; negative-binomial({r:.2g}) would allow for it"
            if trial is not None and trial.works
            else ""
        ),
        f"Counts scatter around the model {ratio:.3g} times as much as loss '{case.loss}' says, "
        f"large and small counts weighing alike, {t.scatter.score:.3g} standard deviations beyond "
        "chance: what the model calls surprising is less so.",
        advice,
        figures,
    )


def zero_inflation(case: Case) -> Iterator[Finding]:
    """Zeros where something is expected, more than counts as widely scattered as these have.

    Where less is expected, zeros are the rule, and cannot be told from wide scatter.
    """
    t = case.tallies
    assert t.counts is not None
    scatter = max(t.counts.dispersion(), case.loss.overdispersion)
    zeros, expected, spread = t.counts.zeros(scatter, SOMETHING)
    excess = zeros - expected
    score = excess / math.sqrt(max(spread, 1.0))
    if score < BEYOND_CHANCE or excess < MORE_ZEROS * zeros:
        return
    yield Finding(
        "zero inflation",
        Severity.WARNING,
        f"{zeros:,.0f} cells in which at least 1 is expected are 0, not {expected:,.0f}",
        f"Of the cells in which at least 1 is expected, {zeros:,.0f} are 0, where counts that "
        f"scatter as widely as these would leave {expected:,.0f} ({score:.3g} standard "
        "deviations): some cells seem unable to hold anything.",
        "Say which cells nobody could have counted in (mask=, SparseTensor(missing=)), or model "
        "whether anything happened, X > 0, by 'bernoulli-odds' apart from how much.",
        {"zeros": zeros, "expected_zeros": expected, "score": score},
    )


def calibration(case: Case) -> Iterator[Finding]:
    """Whether events are as frequent as their probabilities say, bin by bin."""
    from scipy.special import chdtrc  # scipy.stats takes half a second to import

    t = case.tallies
    assert t.calibration is not None
    bins = [b for b in t.calibration.bins(1.0) if b.error > 0]
    if len(bins) < 2:
        return
    scores = np.array([(b.observed - b.predicted) / b.error for b in bins])
    chance = float(chdtrc(len(bins), scores @ scores))
    cells = np.array([b.cells for b in bins])
    predicted, observed = (np.array([getattr(b, n) for b in bins]) for n in _COLUMNS)
    level = float(cells @ observed / cells.sum())
    wrong = float(cells @ np.abs(observed - predicted) / cells.sum())
    relative = wrong / max(min(level, 1.0 - level), 1e-300)
    if chance > UNLIKELY or relative < OFF:
        return
    worst = bins[int(np.abs(scores).argmax())]
    yield Finding(
        "badly calibrated probabilities",
        Severity.WARNING,
        f"where the model says {worst.predicted:.3g}, {worst.observed:.3g} happened",
        f"Where the model says {worst.predicted:.3g}, {worst.observed:.3g} happened "
        f"({abs(scores).max():.3g} standard deviations); in the mean it is {wrong:.2g} off, at a "
        f"frequency of {level:.2g}.",
        "Fit it again to this data, or with a higher rank; 'bernoulli-logit' and 'bernoulli-odds' "
        "combine components in different ways, so try the other.",
        {
            "mean_error": wrong,
            "chance": chance,
            "predicted": predicted.tolist(),
            "observed": observed.tolist(),
        },
    )


_COLUMNS = ("predicted", "observed")
