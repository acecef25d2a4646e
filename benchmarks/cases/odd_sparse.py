"""Sparse data under losses without multiplicative updates, 40 odd sets: outliers, uneven scales,
collinear components, low signal, orders 2 to 4. Does a fit go on falling if it is run on?

A fit is run on from its end, with a hundredth of its tolerance and ten times its epochs. What that
gains is compared with the resolution of the loss, the amount by which noise alone moves it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import CPModel, SmartCPD, SparseTensor, losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem

RANK = 4
ODDITIES = ("outliers", "uneven scales", "collinear", "low signal")
SHAPES = ((50, 40, 5), (300, 200), (30, 20, 15, 6), (60, 50, 40), (2000, 1500))
GAINED = 0.02
"""Of the resolution: what a run of ten times the length may gain."""
SEEDS = range(2)


def square(x: float, m: float) -> float:
    return (x - m) ** 2.0 / (1.0 + x * x)


def square_slope(x: float, m: float) -> float:
    return 2.0 * (m - x) / (1.0 + x * x)


LOSSES = {
    "gaussian": losses.get("gaussian"),
    "bernoulli-logit": losses.get("bernoulli-logit"),
    "poisson-log": losses.get("poisson-log"),
    "negative-binomial(1)": losses.get("negative-binomial(1)"),
    "custom": losses.custom(square, square_slope),
}


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    unfinished, false, seconds = 0, 0, []
    for name in list(LOSSES)[: 2 if quick else None]:
        for number, oddity in enumerate(ODDITIES):
            for seed in SEEDS[: 1 if quick else None]:
                X = planted(name, oddity, SHAPES[(2 * number + seed) % len(SHAPES)], seed)
                began = time.process_time()
                fit = SmartCPD(RANK, LOSSES[name], random_state=seed).fit(X)
                seconds.append(time.process_time() - began)
                gain = gained(X, LOSSES[name], fit)
                unfinished += gain > GAINED
                false += gain > GAINED and fit.status_.converged
                told = {"loss": name, "set": oddity, "shape": "x".join(map(str, X.shape))}
                said = {"converged": fit.status_.converged, "gain / resolution": f"{gain:.4f}"}
                yield Row("Fits that are run on", told | said | {"CPU s": seconds[-1]})
    yield Row("Seconds of a fit", {"of": f"{len(seconds)} sets", "CPU s": Spread.of(seconds)})
    yield Verdict("sets on which a longer run gains something", unfinished, 1, at_most=True)
    yield Verdict("of these, sets whose fit said that it converged", false, 0, at_most=True)


def gained(X: SparseTensor, loss: losses.Loss, fit: SmartCPD) -> float:
    """What a longer run from the end of a fit gains, in units of the resolution."""
    epochs = 10 * max(fit.history_[-1].epoch, 50)
    later = SmartCPD(RANK, loss, init=fit.model_, tol=2e-4, max_epochs=epochs).fit(X)
    problem = Problem.build(X, RANK, loss)
    resolution = CellSample(problem).resolution(stack(later.model_.factors))
    return (fit.loss_ - later.loss_) / resolution


def planted(loss: str, oddity: str, shape: tuple[int, ...], seed: int) -> SparseTensor:
    """Entries at random cells, of a sum of components that is odd in one way."""
    rng = np.random.default_rng([seed, *loss.encode(), *oddity.encode()])
    factors = [rng.gamma(0.5, size=(n, RANK)) for n in shape]
    if oddity == "uneven scales":
        factors[0] *= 10.0 ** -np.arange(RANK)
    if oddity == "collinear":
        factors[1][:, 1] = factors[1][:, 0] + 0.1 * factors[1][:, 1]
        factors[0][:, 1] = factors[0][:, 0] + 0.1 * factors[0][:, 1]
    signal = 0.3 if oddity == "low signal" else 3.0
    count = min(int(0.1 * np.prod(shape)), 20_000)
    cells = np.stack([rng.integers(n, size=count) for n in shape], axis=1)
    m = CPModel(factors).values(cells)
    m = signal * m / m.std()
    if loss in ("gaussian", "custom"):
        x = m + rng.standard_normal(count)
        if oddity == "outliers":
            x[rng.choice(count, 3, replace=False)] *= 100.0
    elif loss == "bernoulli-logit":
        x = (rng.random(count) < m / (1.0 + m)).astype(float)
    else:
        x = rng.poisson(m).astype(float)
        if oddity == "outliers":
            x[rng.choice(count, 3, replace=False)] += 1000.0
    _, first = np.unique(cells, axis=0, return_index=True)
    kept = first[x[first] != 0]
    return SparseTensor(cells[kept], x[kept], shape)
