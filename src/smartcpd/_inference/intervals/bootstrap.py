"""Intervals from fits to data that was simulated from the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._data.storage import Dense
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd._inference.intervals.information import cell_weights
from smartcpd._inference.intervals.question import Question
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Dispersion

Ends = tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]


def bootstrap_ends(
    question: Question, dispersion: float, n_bootstrap: int, rng: np.random.Generator
) -> Ends:
    """Lower and upper ends of loadings and weights: quantiles over fits that begin at the model."""
    loss = question.loss
    if not loss.knows("simulate"):
        raise IncompatibleError(
            f"Loss '{loss}' names no distribution to simulate data from. Use method='hessian'."
        )
    if loss.dispersion is Dispersion.FIXED and dispersion != 1.0:
        raise IncompatibleError(
            f"Loss '{loss}' says itself how widely data scatters, so none is simulated with "
            f"dispersion={dispersion:g}. Leave it out, or use method='hessian'."
        )
    if any(known.any() for known in question.known):
        raise IncompatibleError(
            "method='bootstrap' fits all entries anew, and some of these are known. Use "
            "method='hessian' or 'conditional'."
        )
    weights = cell_weights(question.storage)
    values = np.asarray(CPModel(question.factors).full(max_bytes=np.inf))
    fits = []
    for _ in range(n_bootstrap):
        data = loss.simulate(values, rng, dispersion=dispersion)
        found = fit(
            Dense(data, weights),
            question.model.rank,
            loss,
            constraint=list(question.constraints),
            same=[group for group in question.groups if len(group) > 1],
            init=question.balanced,
            random_state=rng,
            progress=False,
        )
        rates = [A / e for A, e in zip(found.model.factors, question.per_row, strict=True)]
        fits.append(replace(found.model, factors=rates).normalize().align(question.model))
    tail = 0.5 * (1.0 - question.level)

    def ends(arrays: list[np.ndarray]) -> np.ndarray:
        found: np.ndarray = np.quantile(np.stack(arrays), [tail, 1.0 - tail], axis=0)
        return found

    factors = [ends([m.factors[n] for m in fits]) for n in range(question.model.order)]
    scales = ends([m.weights for m in fits])
    return [f[0] for f in factors], [f[1] for f in factors], scales[0], scales[1]
