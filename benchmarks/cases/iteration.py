"""One sampled iteration (100³, rank 20, 40 fibers, poisson, entropy, adagrad), one thread.

Against the same iteration in vectorised float64 NumPy, against its two matrix products alone in
the same precision, and against a user's own Poisson loss. Then Jensen steps against adagrad, each
with the map that is chosen for it. Seconds are the processor's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numba
import numpy as np

from benchmarks.harness import interleaved
from benchmarks.results import Bars, Method, Result, Row, Spread, Verdict
from smartcpd import datasets, losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense
from smartcpd._fitting.settings import make_settings
from smartcpd._methods.smd_phase import Sweeper
from smartcpd._problem.problem import Problem
from smartcpd.sampling import Draws
from smartcpd.sampling.uniform import Uniform

RANK, N_FIBERS, N_ITERATIONS = 20, 40, 2000
JENSEN_LOSSES = ("gamma", "beta(0)", "beta(0.5)", "poisson")


def numpy_iterations(X: np.ndarray, factors: list[np.ndarray], draws: Draws) -> None:
    """Algorithm 1 as one would write it with NumPy."""
    A = [F.copy() for F in factors]
    S = [np.zeros_like(F) for F in factors]
    for n, fibers in zip(draws.modes, draws.fibers, strict=True):
        j, k = [m for m in range(3) if m != n]
        H = A[j][fibers[:, j]] * A[k][fibers[:, k]]
        x = np.moveaxis(X, n, 2)[fibers[:, j], fibers[:, k]]
        M = H @ A[n].T
        G = (1 - x / (M + 1e-9)).T @ H / x.size
        S[n] += G**2
        A[n] = np.maximum(A[n] * np.exp(-G / np.sqrt(S[n] + 1e-5)), 1e-9)


@numba.njit
def products(A, Ht, H, M, G, repeats):  # type: ignore[no-untyped-def]
    for _ in range(repeats):
        np.dot(A, Ht, M)
        np.dot(M, H, G)


def user_poisson() -> losses.Loss:
    return losses.custom(
        lambda x, m: m - x * math.log(m + 1e-9),
        lambda x, m: 1.0 - x / (m + 1e-9),
        domain="nonnegative",
        name="my poisson",
    )


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "solver='smd', poisson, entropy, adagrad, 40 fibers", 1)
    yield Method("numpy", "the same iteration, vectorised, float64", 1)
    rng = np.random.default_rng(0)
    X, _ = datasets.count(rank=RANK, random_state=0)
    start = [rng.random((100, RANK)) for _ in range(3)]
    modes = rng.integers(3, size=N_ITERATIONS)
    draws = Uniform().draw(Dense.of(X), modes, N_FIBERS, rng)
    wide = X.astype(np.float64)
    tasks = {"numpy float64": lambda: numpy_iterations(wide, start, draws)}
    with threads.limited_to(1):
        for dtype in ("float32", "float64"):
            for name, loss in (("poisson", losses.get("poisson")), ("own loss", user_poisson())):
                problem = Problem.build(X, RANK, loss, mirror="entropy", step="adagrad")
                settings = make_settings(problem, n_fibers=N_FIBERS, dtype=dtype, n_threads=1)
                A = stack(start, dtype)
                sweeper = Sweeper(problem, problem.phases[0], settings)
                sweeper.start(A, rng)
                tasks[f"{name} {dtype}"] = lambda s=sweeper, a=A: s.run(draws, a)
            A_n, H = (rng.random((n, RANK)).astype(dtype) for n in (100, N_FIBERS))
            buffers = (np.empty((100, N_FIBERS), dtype), np.empty((100, RANK), dtype))
            args = (A_n, np.ascontiguousarray(H.T), H, *buffers, N_ITERATIONS)
            tasks[f"products {dtype}"] = lambda a=args: products(*a)
        times = interleaved(tasks, 3 if quick else 7, time.process_time)
    micros = {
        name: Spread.of([s / N_ITERATIONS * 1e6 for s in timing.seconds])
        for name, timing in times.items()
    }
    for name, spread in micros.items():
        yield Row("An iteration", {"of": name, "µs": spread})
    yield Bars("micros", "A sampled iteration, 100³, rank 20", "microseconds", {"": micros})
    for dtype in ("float32", "float64"):
        ours, reference, mm = (
            times[f"{name} {p}"]
            for name, p in (("poisson", dtype), ("numpy", "float64"), ("products", dtype))
        )
        yield Row(
            "Against NumPy and the matrix products alone",
            {
                "precision": dtype,
                "times faster than NumPy float64": Spread.ratio(reference, ours),
                "in units of its two products": Spread.ratio(ours, mm),
            },
        )
    fast, own = times["poisson float32"], times["own loss float32"]
    reference, mm = times["numpy float64"], times["products float32"]
    yield Verdict("speed against NumPy", reference.median / fast.median, 4)
    yield Verdict("in units of its matrix products", fast.median / mm.median, 4, at_most=True)
    yield Verdict("own loss against built-in", own.median / fast.median, 1.2, at_most=True)
    yield from jensen_against_adagrad(draws, start, 3 if quick else 11)


def jensen_against_adagrad(draws: Draws, start: list[np.ndarray], repeats: int) -> Iterator[Result]:
    """Yield the cost of an iteration with either rule, and their ratio, loss by loss."""
    rng = np.random.default_rng(0)
    counts, _ = datasets.count(rank=RANK, random_state=0)
    positive, _ = datasets.gamma((100, 100, 100), RANK, random_state=0)
    for loss in JENSEN_LOSSES:
        X = counts if loss == "poisson" else positive
        tasks = {}
        for rule in ("adagrad", "jensen"):
            problem = Problem.build(X, RANK, loss, step=rule)
            settings = make_settings(problem, n_fibers=N_FIBERS, n_threads=1)
            A = stack(start, settings.dtype)
            sweeper = Sweeper(problem, problem.phases[0], settings)
            sweeper.start(A, rng)
            tasks[rule] = lambda s=sweeper, a=A: s.run(draws, a)
        with threads.limited_to(1):
            times = interleaved(tasks, repeats, time.process_time)
        ratio = Spread.ratio(times["jensen"], times["adagrad"])
        micros = {
            f"{rule}, µs": Spread.of([s / N_ITERATIONS * 1e6 for s in timing.seconds])
            for rule, timing in times.items()
        }
        yield Row("Jensen steps against adagrad", {"loss": loss, **micros, "ratio": ratio})
        yield Verdict(
            f"{loss}: Jensen steps, in units of adagrad's", ratio.median, 1.5, at_most=True
        )
