"""Default fits of small tensors of planted counts, 10 seeds that no choice was made on.

Fits are timed by the clock in a process that has compiled what they need. A fit that says that its
model was found independently is wrong if the fit of the same data with three times the effort ends
lower by more than the resolution of the loss.
"""

from __future__ import annotations

import statistics
import string
import time
from collections.abc import Iterator

import numpy as np

from benchmarks import real_data
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD
from smartcpd._common import threads

MEAN = 2.0
SEEDS = range(960_000, 960_010)
CASES: tuple[tuple[tuple[int, ...], int, float], ...] = (
    ((2,) * 8, 3, 0.3),
    ((2,) * 12, 3, 0.5),
    ((2,) * 16, 3, 2.0),
    ((100, 100, 10), 20, 2.0),
)
"""Shape, rank, and the seconds that a fit may take in the median."""
METRO_RANK, METRO_SECONDS = 8, 1.0


def planted(shape: tuple[int, ...], rank: int, seed: int) -> np.ndarray:
    """Counts whose factors are exponential, two in a cell in the mean."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(1.0, 1.0, (size, rank)) for size in shape]
    letters = string.ascii_lowercase[: len(shape)]
    formula = ",".join(letter + "z" for letter in letters) + "->" + letters
    means = np.einsum(formula, *factors, optimize=True)
    return rng.poisson(means * (MEAN / means.mean()))


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    seeds = SEEDS[:3] if quick else SEEDS
    for shape, rank, limit in CASES:
        data = [planted(shape, rank, seed) for seed in seeds]
        yield from _timed(_named(shape, rank), data, rank, limit)
    metro = real_data.hangzhou_metro()
    name = f"{_named(metro.shape, METRO_RANK)}, passengers"
    yield from _timed(name, [metro] * len(seeds), METRO_RANK, METRO_SECONDS)


def _timed(name: str, data: list[np.ndarray], rank: int, limit: float) -> Iterator[Result]:
    """Yield how long fits of some data take, a seed each, and what they say of themselves."""
    _fit(data[0], rank, 0)
    seconds, n_found, n_wrong = [], 0, 0
    for seed, X in zip(SEEDS, data, strict=False):
        began = time.perf_counter()
        fit = _fit(X, rank, seed)
        seconds.append(time.perf_counter() - began)
        if fit.status_.found >= 2:
            n_found += 1
            longer = _fit(X, rank, seed, effort=3.0)
            n_wrong += fit.loss_ - longer.loss_ > _resolution(X, fit)
    yield Row(
        "Default fits",
        {
            "data": name,
            "s": Spread.of(seconds),
            "found independently": n_found,
            "of which wrongly": n_wrong,
        },
    )
    yield Verdict(f"{name}: median s", statistics.median(seconds), limit, at_most=True)
    yield Verdict(f"{name}: wrongly found independently", n_wrong, 0, at_most=True)


def _fit(X: np.ndarray, rank: int, seed: int, effort: float = 1.0) -> SmartCPD:
    return SmartCPD(rank, "poisson", random_state=seed, effort=effort).fit(X)


def _resolution(X: np.ndarray, fit: SmartCPD) -> float:
    """How far noise alone moves the lowest loss: dispersion x parameters / cells."""
    dispersion = ((X - fit.model_.full()) ** 2).mean() / X.mean()
    n_parameters = fit.rank * (sum(X.shape) - X.ndim + 1)
    return float(dispersion * n_parameters / X.size)


def _named(shape: tuple[int, ...], rank: int) -> str:
    short = len(shape) > 4
    sizes = f"{shape[0]}^{len(shape)}" if short else "x".join(map(str, shape))
    return f"{sizes} R={rank}"
