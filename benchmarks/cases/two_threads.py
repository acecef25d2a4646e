"""An epoch of 1000x1000x200 uint8 counts at rank 50: two threads against one, same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import interleaved
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import datasets
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._fitting.settings import make_settings
from smartcpd._methods.smd_phase import Sweeper
from smartcpd._problem.problem import Problem
from smartcpd.sampling.uniform import Uniform

SHAPE, QUICK_SHAPE, RANK = (1000, 1000, 200), (300, 300, 200), 50


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "solver='smd', an epoch", "1 and 2")
    shape = QUICK_SHAPE if quick else SHAPE
    X, _ = datasets.count(shape, RANK, a_max=0.2, random_state=0)
    problem = Problem.build(X, RANK, "poisson")
    entries = 2 * RANK * sum(shape) / 3
    n_iterations = int(np.prod(shape) / entries)
    results, tasks = {}, {}
    for n_threads in (1, 2):
        settings = make_settings(problem, n_threads=n_threads)

        def epoch(settings=settings, n_threads=n_threads):  # type: ignore[no-untyped-def]
            rng = np.random.default_rng(1)
            A = stack([rng.random((size, RANK)) for size in shape])
            with threads.limited_to(n_threads):
                sweeper = Sweeper(problem, problem.phases[0], settings)
                sweeper.start(A, rng)
                modes = rng.integers(3, size=n_iterations)
                draws = Uniform().draw(problem.storage, modes, 2 * RANK, rng)
                sweeper.run(draws, A)
            results[n_threads] = A

        tasks[f"{n_threads} threads"] = epoch
    times = interleaved(tasks, repeats=2 if quick else 5)
    one, two = times["1 threads"], times["2 threads"]
    yield Row(
        "An epoch",
        {
            "data": str(X.dtype),
            "one thread, s": Spread.of(one.seconds),
            "two, s": Spread.of(two.seconds),
            "times faster": Spread.ratio(one, two),
            "same bits": np.array_equal(results[1], results[2]),
        },
    )
    yield Verdict("speed of two threads", one.median / two.median, 1.5)
