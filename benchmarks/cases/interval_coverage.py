"""How many true loadings lie in the 90 % intervals of default fits, over 200 simulated data sets.

Small, well-identified cases of two components. Loadings of all modes count, those whose true value
is small among them. Fits begin at the truth, so that what is measured is the intervals and not
whether a start finds the right optimum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.results import Method, Result, Row, Verdict
from smartcpd import CPModel, SmartCPD, losses
from smartcpd._common import threads

SEEDS = range(972_000, 972_200)
RANK, LEVEL = 2, 0.9
LOWEST, HIGHEST = 0.84, 0.96
CASES = {
    "poisson": ((20, 15, 10), 3.0, {}),
    "gaussian": ((20, 15, 10), 1.0, {"sigma": 0.5}),
    "gamma": ((20, 15, 10), 1.0, {"shape": 4.0}),
    "bernoulli-odds": ((40, 30, 25), 1.0, {}),
}
"""Shape, scale of the model, and the noise."""


def covered(loss: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which loadings, and which weights, lie in their intervals."""
    shape, scale, noise = CASES[loss]
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(1.0, 1.0, (n, RANK)) for n in shape]
    truth = CPModel([scale * factors[0], *factors[1:]], loss_function=loss)
    X = losses.get(loss).simulate(CPModel(truth.factors).full(), rng, **noise)
    fit = SmartCPD(RANK, loss, init=truth, random_state=seed).fit(X)
    found = fit.model_.intervals(X, LEVEL)
    weights = truth.normalize().align(found.model).weights
    inside = (found.weights_lower <= weights) & (weights <= found.weights_upper)
    return np.concatenate([part.ravel() for part in found.contains(truth)]), inside


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "intervals(X, level=0.9)", threads.resolve(None))
    for loss, (shape, _, _) in CASES.items():
        results = [covered(loss, seed) for seed in (SEEDS[:10] if quick else SEEDS)]
        loadings = np.concatenate([found for found, _ in results])
        share = float(loadings.mean())
        yield Row(
            "True loadings inside their 90 % intervals",
            {
                "data": f"{loss}, {'x'.join(map(str, shape))}, rank {RANK}",
                "data sets": len(results),
                "loadings, %": 100 * share,
                "weights, %": 100 * float(np.mean([found for _, found in results])),
            },
        )
        yield Verdict(f"{loss}: share inside, at least", share, LOWEST)
        yield Verdict(f"{loss}: share inside, at most", share, HIGHEST, at_most=True)
