"""An iteration of gcp-adam against pyttb's Adam (count 100³, rank 20, 10,000 cells a gradient).

An iteration of so few cells runs on one thread, while a second one draws the cells of those that
follow. Then the exact loss after as many iterations of
both from the same start; also with the bias correction of Adam as published, whose clock advances
by one in an iteration where pyttb's, and by default ours, advances by an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.cases.against_pyttb import RANK
from benchmarks.harness import Timing, interleaved
from benchmarks.results import Lines, Method, Result, Row, Spread, Verdict, blas_threads
from smartcpd import datasets
from smartcpd._app.paper.peers import sparse_data, start_for
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._fitting.settings import make_settings
from smartcpd._methods.base import Task
from smartcpd._methods.gcp_adam import AdamRun, GCPAdam
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem

PEER_ITERATIONS, MORE = 20, 10
SAMPLES = (10_000, 1000)
SEEDS = (31, 32, 33)
LOOKS = (100, 300, 1000, 2000)
EPOCH = 1000


class Peer:
    """pyttb's Adam, iteration by iteration: what the inner loop of its `solve` does."""

    def __init__(self, X: np.ndarray, start: list[np.ndarray], n_samples: int) -> None:
        import pyttb as ttb
        from pyttb.gcp.fg_setup import setup
        from pyttb.gcp.optimizers import Adam
        from pyttb.gcp.samplers import GCPSampler

        self.data = ttb.tensor(X.astype(np.float64))
        self.model = ttb.ktensor([A.copy() for A in start])
        _, self.derivative, self.low = setup(ttb.gcp.handles.Objectives.POISSON, self.data)
        self.sampler = GCPSampler(self.data, gradient_samples=n_samples)
        self.adam = Adam(epoch_iters=EPOCH, printitn=0)

    def run(self, n_iterations: int) -> None:
        from pyttb.gcp.fg_est import estimate

        for _ in range(n_iterations):
            gradient = estimate(
                self.model,
                *self.sampler.gradient_sample(self.data),
                None,
                gradient_handle=self.derivative,
                lambda_check=False,
                crng=self.sampler.crng,
            )
            assert not any(np.isinf(G).any() for G in gradient)
            self.model.factor_matrices, _ = self.adam.update_step(self.model, gradient, self.low)

    @property
    def factors(self) -> list[np.ndarray]:
        return list(self.model.factor_matrices)


def ours(
    problem: Problem, start: list[np.ndarray], n_iterations: int, n_samples: int
) -> Callable[[], None]:
    """Epochs of so many iterations, without the loss that the solver looks at after them."""
    rule = GCPAdam(epoch_iterations=n_iterations, n_samples=n_samples)
    settings = make_settings(problem)
    run = AdamRun(
        rule, Task(problem, settings, start, np.random.default_rng(0), lambda report: False)
    )
    return lambda: run._run_epoch(rule.rate)


def losses_on_the_way(
    problem: Problem, factors: Callable[[], np.ndarray], run: Callable[[int], None]
) -> list[float]:
    objective = objective_of(problem.storage, problem.loss)
    found = []
    for before, now in zip((0, *LOOKS), LOOKS, strict=False):
        run(now - before)
        found.append(objective.estimate(factors()).loss)
    return found


def traces(X: np.ndarray, seed: int) -> Iterator[tuple[str, list[float]]]:
    problem = Problem.build(X, RANK, "poisson")
    start = start_for(sparse_data(X), RANK, seed)
    for name, clock in (("ours", None), ("published clock", 1)):
        rule = GCPAdam(clock=clock)
        settings = make_settings(problem)
        rng = np.random.default_rng(seed)
        mine = AdamRun(rule, Task(problem, settings, start, rng, lambda report: False))

        def go(n: int, mine: AdamRun = mine, rng: np.random.Generator = rng) -> None:
            for _ in range(0, n, 20):
                mine.adam.run(mine.sampler.draw(20, rng), mine.sampler.weights, mine.rule.rate)

        yield name, losses_on_the_way(problem, lambda m=mine: m.adam.factors, go)
    np.random.seed(seed)  # noqa: NPY002 (pyttb draws from the global state)
    peer = Peer(X, start, SAMPLES[0])
    yield "pyttb", losses_on_the_way(problem, lambda: stack(peer.factors), peer.run)


def run(quick: bool = False) -> Iterator[Result]:
    n_threads = threads.resolve(None)
    yield Method("smartcpd", "solver='gcp-adam', defaults but for n_samples", n_threads)
    yield Method("pyttb", "gcp_opt, Adam, defaults, uniform samples", blas_threads())
    seeds = SEEDS[:1] if quick else SEEDS
    X, _ = datasets.count(rank=RANK, random_state=SEEDS[0])
    problem = Problem.build(X, RANK, "poisson")
    start = start_for(sparse_data(X), RANK, SEEDS[0])
    peers = {n: Peer(X, start, n) for n in SAMPLES}
    speeds = {}
    with threads.limited_to(n_threads):
        for n in SAMPLES:
            times = interleaved(
                {
                    "pyttb": lambda n=n: peers[n].run(PEER_ITERATIONS),
                    "ours": ours(problem, start, PEER_ITERATIONS * MORE, n),
                },
                repeats=5 if quick else 15,
            )
            slow, fast = (times[name] for name in ("pyttb", "ours"))
            # The same unit for both, so that ratios are those of iterations.
            fast = Timing([s / MORE for s in fast.seconds])
            per_iteration = {
                name: Spread.of([s / PEER_ITERATIONS * 1e3 for s in timing.seconds])
                for name, timing in (("pyttb, ms", slow), ("ours, ms", fast))
            }
            ratio = Spread.ratio(slow, fast)
            yield Row("An iteration", {"cells": n, **per_iteration, "times faster": ratio})
            speeds[n] = slow.median / fast.median
        apart = []
        for seed in seeds:
            X, _ = datasets.count(rank=RANK, random_state=seed)
            found = dict(traces(X, seed))
            for name, values in found.items():
                losses = {f"after {k}": f"{v:.4f}" for k, v in zip(LOOKS, values, strict=True)}
                yield Row("Exact loss", {"seed": seed, "method": name, **losses})
            if seed == seeds[0]:
                series = {k: list(zip(LOOKS, v, strict=True)) for k, v in found.items()}
                title = "Adam on sampled cells, count 100³, rank 20"
                yield Lines("losses", title, "iterations", "mean loss", series)
            apart.append(abs(found["ours"][-1] - found["pyttb"][-1]))
    for n in SAMPLES:
        yield Verdict(f"speed against pyttb, {n} cells", speeds[n], 20)
    yield Verdict(
        "loss apart from pyttb's after as many iterations", max(apart), 0.005, at_most=True
    )
