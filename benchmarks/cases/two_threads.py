"""An epoch of 1000x1000x200 uint8 counts at rank 50: two threads against one, same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import interleaved, ratio_spread, verdict
from smartcpd import datasets, threads
from smartcpd.fitting import make_settings
from smartcpd.problem import Problem
from smartcpd.sampling.uniform import Uniform
from smartcpd.solvers.sweeper import Sweeper
from smartcpd.stack import stack

SHAPE, RANK = (1000, 1000, 200), 50


def run() -> Iterator[str]:
    X, _ = datasets.count(SHAPE, RANK, a_max=0.2, random_state=0)
    problem = Problem.build(X, RANK, "poisson")
    entries = 2 * RANK * sum(SHAPE) / 3
    n_iterations = int(np.prod(SHAPE) / entries)
    results, tasks = {}, {}
    for n_threads in (1, 2):
        settings = make_settings(problem, n_threads=n_threads)

        def epoch(settings=settings, n_threads=n_threads):  # type: ignore[no-untyped-def]
            rng = np.random.default_rng(1)
            A = stack([rng.random((size, RANK)) for size in SHAPE])
            with threads.limited_to(n_threads):
                sweeper = Sweeper(problem, problem.phases[0], settings)
                sweeper.start(A, rng)
                modes = rng.integers(3, size=n_iterations)
                draws = Uniform().draw(problem.storage, modes, 2 * RANK, rng)
                sweeper.run(draws, A)
            results[n_threads] = A

        tasks[f"{n_threads} threads"] = epoch
    times = interleaved(tasks, repeats=5)
    one, two = times["1 threads"], times["2 threads"]
    yield f"{X.dtype}: an epoch takes {one.median:.2f} s on one thread, {two.median:.2f} s on two"
    same = np.array_equal(results[1], results[2])
    yield f"two threads: {ratio_spread(one, two)}; same bits: {same}"
    yield verdict("speed of two threads", one.median / two.median, 1.5)
