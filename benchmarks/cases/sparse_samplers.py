"""What a sampled gradient is worth: entries read to reach a loss, and variance for its cost.

UMLS (135x46x135, yes/no, 0.8 % ones) and planted counts (1 % nonzeros), rank 10. The target is the
loss that the paper's uniform fibers reach after 100 epochs, 100 times as many entries as cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.ours import first_at, tensor_of
from benchmarks.real_data import umls
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, SparseTensor, datasets
from smartcpd._common import threads
from smartcpd._common.stacked import offsets, stack
from smartcpd._fitting.settings import make_settings
from smartcpd._methods.smd_phase import sampled_gradient
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem

RANK, EPOCHS, SEEDS = 10, 100, range(3)
SAMPLERS = ("uniform", "nonempty", "nonzeros")


def run() -> Iterator[Result]:
    yield Method("smartcpd", "solver='smd' with each sampler; defaults", threads.resolve(None))
    cases = {
        "UMLS, bernoulli-odds": (tensor_of(umls()), "bernoulli-odds"),
        "planted counts, poisson": (
            datasets.events((200, 100, 50), RANK, 12_000, random_state=0).data,
            "poisson",
        ),
    }
    for name, (X, loss) in cases.items():
        yield from entries_to_the_same_loss(name, X, loss)
        yield from variances(name, X, loss)


def entries_to_the_same_loss(data: str, X: SparseTensor, loss: str) -> Iterator[Result]:
    ratios: dict[str, list[float]] = {"smd, nonzeros": [], "default": []}
    for seed in SEEDS:
        common: dict[str, Any] = {"random_state": seed}
        slow = SmartCPD(
            RANK, loss, solver="smd", sampler="uniform", max_epochs=EPOCHS, tol=0, **common
        ).fit(X)
        target = min(r.loss for r in slow.history_ if "components" not in r.phase)
        reached = first_at(slow.history_, target)
        assert reached is not None
        fits = {
            "smd, nonzeros": SmartCPD(RANK, loss, solver="smd", max_epochs=300, tol=0, **common),
            "default": SmartCPD(RANK, loss, **common),
        }
        for name, est in fits.items():
            row = first_at(est.fit(X).history_, target)
            ratios[name].append(0.0 if row is None else reached.entries / row.entries)
    for name, found in ratios.items():
        told = {"data": data, "shape": repr(X), "by": name, "times fewer": Spread.of(found)}
        yield Row("Entries read to the loss that uniform fibers reach", told)
        yield Verdict(f"{data}: {name}, times fewer entries, the least", min(found), 10)


def variances(data: str, X: SparseTensor, loss: str) -> Iterator[Result]:
    """Mean squared error of a sampled gradient over the size of the exact one, for equal cost."""
    model = SmartCPD(RANK, loss, random_state=0, max_epochs=30).fit(X).model_
    A = stack(model.normalize().distribute().factors)
    starts = offsets(X.shape)
    rng = np.random.default_rng(0)
    with threads.limited_to(1):
        _, exact = objective_of(X, Problem.build(X, RANK, loss).loss).gradient(A)
        for name in SAMPLERS:
            problem = Problem.build(X, RANK, loss, sampler=name)
            settings = make_settings(problem, n_threads=1)
            errors, entries = [], 0
            for mode in range(len(X.shape)):
                G = exact[starts[mode] : starts[mode + 1]]
                for _ in range(50):
                    modes = np.array([mode])
                    draws = problem.sampler.draw(X, modes, settings.n_fibers, rng)
                    found = sampled_gradient(problem, settings, draws, A, rng)
                    scale = np.square(A[starts[mode] : starts[mode + 1]])
                    errors.append(np.sum(scale * (found - G) ** 2))
                    entries += draws.events.size + draws.fibers.shape[1] * X.shape[mode]
            cost = entries / len(errors)
            yield Row(
                "Variance of a sampled gradient",
                {
                    "data": data,
                    "sampler": name,
                    "entries an iteration": round(cost),
                    "variance x entries": np.mean(errors) * cost,
                },
            )
