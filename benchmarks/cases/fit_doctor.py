"""What `diagnose` says: nothing about sound fits, and the name of every planted defect.

Sound: a default fit of data drawn from a planted model of each loss, on its own data and on data
drawn anew from the fitted model. Defects are planted into counts, yes/no data or the model, one at
a time, and the model is fitted by default settings where the defect is in the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.results import Method, Result, Row, Verdict
from smartcpd import CPModel, SmartCPD, losses
from smartcpd._common import threads
from smartcpd._inference.diagnosis import Severity
from smartcpd.losses import Domain

SEEDS = range(970_000, 970_010)
SHAPE, RANK = (30, 25, 20), 3
LOSSES = (
    "gaussian",
    "poisson",
    "poisson-log",
    "negative-binomial(3)",
    "bernoulli-odds",
    "bernoulli-logit",
    "gamma",
    "beta(0.5)",
    "rayleigh",
    "huber(1)",
)
LEVEL = {"poisson-log": 0.3, "bernoulli-odds": 0.3}


def planted(name: str, rng: np.random.Generator) -> CPModel:
    loss = losses.get(name)
    signed = loss.domain is Domain.REAL
    factors = [
        rng.standard_normal((n, RANK)) if signed else rng.gamma(1.0, 1.0, (n, RANK)) for n in SHAPE
    ]
    factors[0] *= LEVEL.get(name, 1.0)
    return CPModel(factors, loss_function=loss)


def drawn(model: CPModel, rng: np.random.Generator) -> np.ndarray:
    loss = model.loss_function
    assert loss is not None
    X = np.asarray(loss.simulate(model.values(tuple(np.indices(model.shape))), rng), float)
    return X if loss.allows_zeros else np.maximum(X, 1e-6)


def warned(diagnosis: object) -> list[str]:
    return [f.name for f in diagnosis if f.severity is Severity.WARNING]  # type: ignore[attr-defined]


def false_alarms(name: str, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    X = drawn(planted(name, rng), rng)
    fit = SmartCPD(RANK, name, random_state=seed).fit(X)
    return warned(fit.diagnose(X)) + warned(fit.model_.diagnose(drawn(fit.model_, rng)))


def fitted(X: np.ndarray, loss: str, seed: int) -> list[str]:
    return warned(SmartCPD(RANK, loss, random_state=seed).fit(X).diagnose(X))


def over_dispersed(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    mean = planted("poisson", rng).full()
    return fitted(rng.negative_binomial(5, 5 / (5 + mean)), "poisson", seed)


def zero_inflated(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    mean = planted("poisson", rng).full()
    return fitted(rng.poisson(mean) * (rng.random(SHAPE) < 0.7), "poisson", seed)


def one_huge_cell(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    X = drawn(planted("poisson", rng), rng)
    X[3, 4, 5] = 20_000
    return fitted(X, "poisson", seed)


def few_cells(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    X = drawn(planted("gaussian", rng), rng)
    X[:, 7] = np.nan
    X[0, 7, :2] = 1.0
    return fitted(X, "gaussian", seed)


def too_bold(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    model = planted("bernoulli-logit", rng)
    bold = CPModel([2.0 * model.factors[0], *model.factors[1:]], None, "bernoulli-logit")
    return warned(bold.diagnose(drawn(model, rng)))


def stopped_early(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    X = drawn(planted("poisson", rng), rng)
    model = SmartCPD(RANK, "poisson", solver="mm", max_epochs=2, random_state=seed).fit(X).model_
    return warned(model.diagnose(X))


def one_too_many(seed: int, change: Callable[[CPModel], CPModel]) -> list[str]:
    rng = np.random.default_rng(seed)
    model = planted("gaussian", rng)
    return warned(change(model).diagnose(drawn(model, rng)))


def with_column(model: CPModel, scales: list[float]) -> CPModel:
    """Further copies of the first component, of these sizes."""
    factors = [np.column_stack([A, *[A[:, 0]] * len(scales)]) for A in model.factors]
    return CPModel(factors, [*np.ones(RANK), *scales], "gaussian")


DEFECTS: dict[str, Callable[[int], list[str]]] = {
    "over-dispersion": over_dispersed,
    "zero inflation": zero_inflated,
    "dominant cells": one_huge_cell,
    "too few observed cells": few_cells,
    "badly calibrated probabilities": too_bold,
    "non-convergence": stopped_early,
    "dead components": lambda seed: one_too_many(seed, lambda m: with_column(m, [1e-7])),
    "duplicate components": lambda seed: one_too_many(seed, lambda m: with_column(m, [0.5])),
    "diverging components": lambda seed: one_too_many(seed, lambda m: with_column(m, [1e4, -1e4])),
}


def run(quick: bool = False) -> Iterator[Result]:
    seeds = SEEDS[:1] if quick else SEEDS
    yield Method("smartcpd", "defaults", threads.resolve(None))
    alarms = 0
    for name in LOSSES:
        found = [false_alarms(name, seed) for seed in seeds]
        alarms += sum(map(len, found))
        names = sorted({finding for one in found for finding in one})
        cells = {"loss": name, "diagnoses": 2 * len(seeds), "warnings": sum(map(len, found))}
        yield Row("Sound fits", cells | {"which": ", ".join(names)})
    missed = 0
    for defect, examine in DEFECTS.items():
        hits = sum(defect in examine(seed) for seed in seeds)
        missed += len(seeds) - hits
        yield Row("Planted defects", {"defect": defect, "found": f"{hits} of {len(seeds)}"})
    n_sound = 2 * len(seeds) * len(LOSSES)
    yield Verdict(f"warnings about {n_sound} sound fits", alarms, 0.01 * n_sound, at_most=True)
    yield Verdict("planted defects that were missed", missed, 0, at_most=True)
