"""A short fit under a loss that is about to be advised: advice that breaks a fit is none."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from smartcpd import losses
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd._inference.diagnosis.case import Case
from smartcpd.errors import SmartCPDError
from smartcpd.losses import Loss

MOST_STEPS = 100
MOST_SECONDS = 10.0
MOST_GROWTH = 1.5
"""A model that expects more than so many times what it did before has found a loss that hardly
minds large expectations where there is little: nothing it says of its components can be used."""


class Trial(NamedTuple):
    """What a short fit from the model came to."""

    loss: Loss
    growth: float
    """What the model expects in all cells together, relative to what it did before."""

    @property
    def works(self) -> bool:
        return math.isfinite(self.growth) and 1 / MOST_GROWTH < self.growth < MOST_GROWTH


def tried(case: Case, name: str) -> Trial | None:
    """Fit a little under another loss, from where the model is; None where it cannot begin
    there.
    """
    before = case.model
    if case.loss.mean_scale is None:
        return None
    try:
        found = fit(
            case.storage,
            before.rank,
            losses.get(name),
            constraint=list(case.problem.constraints),
            init=CPModel(case.factors, loss_function=case.loss),
            max_epochs=MOST_STEPS,
            max_time=MOST_SECONDS,
            random_state=0,
            progress=False,
        )
    except SmartCPDError:
        return None
    return Trial(found.problem.loss, _expected(found.model) / max(_expected(before), 1e-300))


def _expected(model: CPModel) -> float:
    """What a model expects in all cells together."""
    loss = model.loss_function
    assert loss is not None
    assert loss.mean_scale is not None
    columns = [A.sum(axis=0, dtype=np.float64) for A in model.distribute().factors]
    return float(loss.mean_scale * np.prod(columns, axis=0).sum())
