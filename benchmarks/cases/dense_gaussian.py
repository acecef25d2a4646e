"""Gaussian data 100³, rank 20, 20 dB: the default fit against TensorLy's parafac and HALS.

TensorLy's best settings are searched on the first seed: the ones that come soonest within 1.1 times
the error of the optimum reached from the true factors. parafac is looked at after every iteration
while the clock stands still. HALS has no callback: it is called again with growing limits of
iterations, and the shortest call that gets there counts; its exact steps take minutes here and are
left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.cases.dense_peers import Reached
from benchmarks.results import Bars, Method, Result, Row, Spread, Verdict, blas_threads
from smartcpd import SmartCPD, datasets, metrics
from smartcpd._common import threads

SEEDS, RANK, SNR = range(960_000, 960_004), 20, 20.0
MOST_ITERATIONS = 1280
HALS_LIMITS = (10, 20, 40, 80, 160, 320)
PARAFAC = (
    {"init": "svd"},
    {"init": "svd", "linesearch": True},
    {"init": "random"},
    {"init": "random", "linesearch": True},
)
HALS: tuple[dict[str, Any], ...] = ({"init": "svd"}, {"init": "random"})
CONSTRAINTS = {"parafac": "free", "non_negative_parafac_hals": "nonnegative"}

Peer = Callable[..., Reached]


def ours(X: np.ndarray, truth: list[np.ndarray], aim: float, seed: int, kind: str) -> Reached:
    reached = Reached(truth, aim)
    fit = SmartCPD(RANK, "gaussian", constraint=kind, random_state=seed, callback=reached.watch)
    fit.fit(X)
    reached.end()
    return reached


def parafac(
    X: np.ndarray, truth: list[np.ndarray], aim: float, seed: int, **settings: Any
) -> Reached:
    from tensorly.decomposition import parafac

    reached = Reached(truth, aim)

    def look(cp: Any, _: Any = None) -> None:
        weights, factors = cp
        reached.look(lambda: [factors[0] * weights, *factors[1:]])

    parafac(
        X, RANK, n_iter_max=MOST_ITERATIONS, tol=1e-8, random_state=seed, callback=look, **settings
    )
    reached.end()
    return reached


def hals(X: np.ndarray, truth: list[np.ndarray], aim: float, seed: int, **settings: Any) -> Reached:
    from tensorly.decomposition import non_negative_parafac_hals

    reached = Reached(truth, aim)
    for limit in HALS_LIMITS:
        began = time.perf_counter()
        weights, factors = non_negative_parafac_hals(
            X, RANK, n_iter_max=limit, tol=1e-8, random_state=seed, **settings
        )
        reached.whole = time.perf_counter() - began
        found = [factors[0] * weights, *factors[1:]]
        if metrics.factor_mse(found, truth) <= aim:
            reached.aimed = reached.whole
            break
    return reached


def run(quick: bool = False) -> Iterator[Result]:
    yield Method(
        "smartcpd", "loss='gaussian', constraint='free' or 'nonnegative'", threads.resolve(None)
    )
    for kind in CONSTRAINTS.values():  # compiles
        X, _ = datasets.gaussian((20,) * 3, 3, snr=SNR, random_state=0)
        SmartCPD(3, "gaussian", constraint=kind).fit(X)
        SmartCPD(RANK, "gaussian", constraint=kind, max_epochs=3).fit(
            datasets.gaussian(rank=RANK, snr=SNR, random_state=0).data
        )
    bars: dict[str, dict[str, float | Spread]] = {}
    cases: tuple[tuple[str, Peer, Any], ...] = (
        ("parafac", parafac, PARAFAC[:1] if quick else PARAFAC),
        ("non_negative_parafac_hals", hals, HALS[:1] if quick else HALS),
    )
    for name, peer, choices in cases:
        yield from against(name, peer, list(choices), SEEDS[:1] if quick else SEEDS, bars)
    yield Bars("aim", "Gaussian data 100³, rank 20: time to the aim", "seconds", bars)


def against(
    name: str,
    peer: Peer,
    choices: list[dict[str, Any]],
    seeds: range,
    bars: dict[str, dict[str, float | Spread]],
) -> Iterator[Result]:
    kind = CONSTRAINTS[name]
    pairs = []
    for seed in seeds:
        X, truth = datasets.gaussian(rank=RANK, snr=SNR, random_state=seed)
        best = SmartCPD(RANK, "gaussian", constraint=kind, init=truth).fit(X)
        aim = 1.1 * metrics.factor_mse(best.model_, truth)
        mine = ours(X, truth, aim, seed, kind)
        tried = [peer(X, truth, aim, seed, **choice) for choice in choices]
        for choice, found in zip(choices, tried, strict=True):
            told = {"seed": seed, "settings": ", ".join(f"{k}={v}" for k, v in choice.items())}
            told |= {"to the aim, s": found.aimed, "in all, s": found.whole}
            yield Row(f"TensorLy's {name}", told)
        soonest = min(range(len(tried)), key=lambda k: (tried[k].aimed, tried[k].whole))
        choices = [choices[soonest]]
        pairs.append((mine, tried[soonest]))
    settings = ", ".join(f"{k}={v}" for k, v in choices[0].items())
    yield Method("tensorly", f"{name}, {settings}, tol=1e-8", blas_threads())
    # A peer that does not get there is counted with the time after which it gave up.
    ratios = [min(t.aimed, t.whole) / m.aimed for m, t in pairs]
    aims = Spread.of([m.aimed for m, _ in pairs])
    theirs = Spread.of([min(t.aimed, t.whole) for _, t in pairs])
    bars[kind] = {"smartcpd": aims, f"TensorLy {name}": theirs}
    yield Row(
        "Seconds to the aim",
        {
            "constraint": kind,
            "ours": aims,
            "ours, whole fit": Spread.of([m.whole for m, _ in pairs]),
            "TensorLy": theirs,
            "TensorLy, whole fit": Spread.of([t.whole for _, t in pairs]),
            "its aims reached": f"{sum(np.isfinite(t.aimed) for _, t in pairs)} of {len(pairs)}",
            "times faster": Spread.of(ratios),
        },
    )
    yield Verdict(f"{kind}: times faster than TensorLy's {name}", Spread.of(ratios).median, 3)
