"""Intervals from fits to data that was simulated from the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._data.storage import Dense
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd._inference.intervals.information import cell_weights
from smartcpd._inference.intervals.question import Question
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss
from smartcpd.losses.custom import CustomLoss

Ends = tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]


def bootstrap_ends(
    question: Question, dispersion: float, n_bootstrap: int, rng: np.random.Generator
) -> Ends:
    """Lower and upper ends of loadings and weights: quantiles over fits that begin at the model."""
    loss = question.loss
    if isinstance(loss, CustomLoss):
        raise IncompatibleError(
            f"Loss '{loss}' names no distribution to simulate data from. Use method='hessian'."
        )
    weights = cell_weights(question.storage)
    values = CPModel(question.factors).full(max_bytes=np.inf)
    fits = []
    for _ in range(n_bootstrap):
        data = simulated(loss, values, dispersion, rng)
        found = fit(
            Dense(data, weights),
            question.model.rank,
            loss,
            constraint=list(question.constraints),
            init=question.balanced,
            random_state=rng,
            progress=False,
        )
        fits.append(found.model.normalize().align(question.model))
    tail = 0.5 * (1.0 - question.level)

    def ends(arrays: list[np.ndarray]) -> np.ndarray:
        found: np.ndarray = np.quantile(np.stack(arrays), [tail, 1.0 - tail], axis=0)
        return found

    factors = [ends([m.factors[n] for m in fits]) for n in range(question.model.order)]
    scales = ends([m.weights for m in fits])
    return [f[0] for f in factors], [f[1] for f in factors], scales[0], scales[1]


def simulated(loss: Loss, m: np.ndarray, dispersion: float, rng: np.random.Generator) -> Any:
    """Data of the loss's distribution with this dispersion."""
    if loss.name == "gaussian":
        return loss.simulate(m, rng, sigma=np.sqrt(dispersion))  # type: ignore[call-arg]
    if loss.name == "gamma":
        return np.maximum(loss.simulate(m, rng, shape=1.0 / dispersion), 1e-300)  # type: ignore[call-arg]
    if loss.name == "beta":
        return np.maximum(loss.simulate(m, rng, dispersion=dispersion), 1e-300)  # type: ignore[call-arg]
    if loss.name == "huber":
        return m + np.sqrt(dispersion) * rng.standard_normal(m.shape)
    if loss.name in ("poisson", "poisson-log") and dispersion != 1.0:
        return dispersion * rng.poisson(loss.mean(m, loss.params) / dispersion)
    return loss.simulate(m, rng)
