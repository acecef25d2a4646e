"""Fits that are told something, 20 seeds each: known parts, exposure, shared factors; and halves.

Known parts: counts 30x25x20, rank 4; the error of all factors must be no larger than that of a fit
that knows nothing. Exposure: counts 20x18x15, rank 3, with exposures over three decades; the error
of rates must be within 1.1 of that of the optimum reached from the true rates with the same
exposures. Shared factors: networks 20x20x12, rank 3; the loss must be within a tenth of its
statistical resolution of that of the free fit. Halves: of three components, one belongs to a
single row of the mode that is split.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import smartcpd
from benchmarks.oracle import oracle
from benchmarks.results import Method, Result, Row, Verdict
from smartcpd import CPModel, SmartCPD, SparseTensor, datasets, metrics
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem

SEEDS = range(930_000, 930_020)
ALLOWED = 1.1
VISIBLE = 5.0
"""Ignoring an exposure counts as visibly wrong from this multiple of the error on."""


def run(quick: bool = False) -> Iterator[Result]:
    seeds = SEEDS[:3] if quick else SEEDS
    yield Method("smartcpd", "defaults", threads.resolve(None))
    yield from _known(seeds)
    yield from _exposed(seeds)
    yield from _shared(seeds)
    yield from _halves(seeds)


def _row(case: str, began: float, figures: list[float], good: int) -> Row:
    return Row(
        "Fits that are told something",
        {
            "case": case,
            "median": float(np.median(figures)),
            "worst": float(np.max(figures)),
            "good": good,
            "CPU s a seed": (time.process_time() - began) / len(figures),
        },
    )


def _known(seeds: range) -> Iterator[Result]:
    planted = {
        seed: datasets.count((30, 25, 20), 4, a_max=1.5, random_state=seed) for seed in seeds
    }
    plain = {
        seed: metrics.factor_mse(SmartCPD(4, "poisson", random_state=seed).fit(X).factors_, truth)
        for seed, (X, truth) in planted.items()
    }
    for name in ("a factor", "a component", "both"):
        began, ratios = time.process_time(), []
        for seed, (X, truth) in planted.items():
            told = {}
            if name != "a component":
                told["fixed"] = {0: truth[0]}
            if name != "a factor":
                told["fixed_components"] = [A[:, :1] for A in truth]
            est = SmartCPD(4, "poisson", random_state=seed, **told).fit(X)
            ratios.append(metrics.factor_mse(est.factors_, truth) / plain[seed])
        good = sum(ratio <= 1.0 for ratio in ratios)
        yield _row(f"{name} known: error, times that without", began, ratios, good)
        yield Verdict(f"{name} known: error no larger, of {len(ratios)}", good, len(ratios))


def _exposed(seeds: range) -> Iterator[Result]:
    shape = (20, 18, 15)
    for name in ("dense, of modes", "sparse, of modes", "dense, of cells", "sparse, of cells"):
        began, ratios, ignored = time.process_time(), [], []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            truth = [rng.gamma(1.0, 0.7, (size, 3)) for size in shape]
            given = {n: 10 ** rng.uniform(-0.75, 0.75, shape[n]) for n in (0, 2)}
            E = given[0][:, None, None] * np.ones((1, shape[1], 1)) * given[2]
            if name.endswith("cells"):
                E = 10 ** rng.uniform(-1.5, 1.5, shape)
            X = rng.poisson(E * np.asarray(CPModel(truth).full()))
            data, exposure = X, given if name.endswith("modes") else E
            if name.startswith("sparse"):
                data = _sparse(X)
                exposure = given if name.endswith("modes") else _sparse(E)
            est = SmartCPD(3, "poisson", random_state=seed).fit(data, exposure=exposure)
            best = oracle(X / E, truth, "poisson", weights=E)
            error = metrics.factor_mse(est.factors_, truth)
            ratios.append(error / metrics.factor_mse(best.factors, truth))
            without = SmartCPD(3, "poisson", random_state=seed).fit(data)
            ignored.append(metrics.factor_mse(without.factors_, truth) / error)
        good = sum(ratio <= ALLOWED for ratio in ratios)
        yield _row(f"exposure, {name}: error, times the optimum's", began, ratios, good)
        yield Verdict(
            f"exposure, {name}: within {ALLOWED}, of {len(ratios)}", good, 0.9 * len(ratios)
        )
        yield Verdict(f"exposure ignored, {name}: least error, times", min(ignored), VISIBLE)


def _sparse(X: np.ndarray) -> SparseTensor:
    return SparseTensor(np.argwhere(X), X[X != 0], X.shape)


def _shared(seeds: range) -> Iterator[Result]:
    began, excess = time.process_time(), []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        A, C = rng.gamma(1.0, 0.7, (20, 3)), rng.gamma(2.0, 0.5, (12, 3))
        X = rng.poisson(np.asarray(CPModel([A, A, C]).full()))
        upper = np.triu(np.ones((20, 20), bool))[:, :, None]
        X = np.where(upper, X, X.swapaxes(0, 1))
        tied = SmartCPD(3, "poisson", same=[(0, 1)], random_state=seed).fit(X)
        free = SmartCPD(3, "poisson", random_state=seed).fit(X)
        unit = CellSample(Problem.build(X, 3, "poisson")).resolution(stack(free.factors_))
        excess.append((tied.loss_ - free.loss_) / unit)
    good = sum(each <= 0.1 for each in excess)
    yield _row("shared factor: loss beyond the free fit's, in resolutions", began, excess, good)
    yield Verdict(f"shared factor: as good, of {len(excess)}", good, 0.9 * len(excess))


def _halves(seeds: range) -> Iterator[Result]:
    began, margins = time.process_time(), []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        subjects = rng.gamma(4.0, 0.5, (24, 3))
        subjects[:, 2] = 0.0
        subjects[0, 2] = 25.0  # the third component belongs to one row alone
        others = [rng.gamma(0.4, 2.0, (size, 3)) for size in (14, 12)]
        truth = CPModel([subjects, *others])
        X = rng.poisson(np.asarray(truth.full()))
        found = smartcpd.replicate(X, 3, "poisson", mode=0, halves=8, random_state=seed)
        again = found.found_again()
        own = np.abs(found.model.normalize().factors[0]) ** 2
        lonely = int(np.argmax(own.max(axis=0)))
        apart = bool(again.sum() == 2 and not again[lonely])
        margins.append(0.0 if apart else 1.0)
    good = int(len(margins) - sum(margins))
    yield _row("halves: not told apart", began, margins, good)
    yield Verdict(
        f"halves: stable and unstable told apart, of {len(margins)}", good, 0.9 * len(margins)
    )
