"""The peers, each from a given start on sparse data: how low is the exact loss after how long.

The clock covers the peer's own call and nothing else: building its tensor and taking exact losses
do not count. pyttb runs undisturbed and is looked at from inside; GenTen reports its own progress.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmarks.real_data import SparseData
from benchmarks.results import Method

Factors = list[np.ndarray]
EPOCHS = (5, 10, 20, 30, 40, 60, 80, 100)  # that GenTen's sampled fits are limited to
EPS = 1e-9  # added to the model inside logarithms
BLOCK = 1 << 17  # nonzeros looked at together


@dataclass(frozen=True)
class PeerRun:
    """What a peer did: its settings, and (seconds, exact mean loss over all cells) on its way."""

    description: str
    trace: list[tuple[float, float]]

    @property
    def name(self) -> str:
        """The description without settings."""
        return ", ".join(self.description.split(", ")[:2])

    @property
    def seconds(self) -> float:
        return self.trace[-1][0]

    @property
    def loss(self) -> float:
        return self.trace[-1][1]

    def seconds_to(self, target: float) -> float:
        """When the loss first was at most the target; infinity if never."""
        return min((s for s, loss in self.trace if loss <= target), default=float("inf"))


def start_for(data: SparseData, rank: int, seed: int) -> Factors:
    """Uniform factors, balanced, scaled so that the mean of the model is the mean of the data."""
    rng = np.random.default_rng(seed)
    factors = [rng.random((size, rank)) for size in data.shape]
    level = np.prod([A.mean(axis=0) for A in factors], axis=0).sum()
    scale = data.values.sum() / data.n_cells / level
    return [A * scale ** (1 / len(factors)) for A in factors]


def log_at_nonzeros(data: SparseData, factors: Factors) -> float:
    """Sum of x log(m + EPS)."""
    total = 0.0
    for first in range(0, len(data.values), BLOCK):
        block = slice(first, first + BLOCK)
        rows = factors[0][data.indices[block, 0]]
        for n in range(1, len(factors)):
            rows = rows * factors[n][data.indices[block, n]]
        total += float(data.values[block] @ np.log(rows.sum(axis=1) + EPS))
    return total


def mean_poisson(data: SparseData, factors: Factors) -> float:
    expected = np.prod([A.sum(axis=0) for A in factors], axis=0).sum()
    return float(expected - log_at_nonzeros(data, factors)) / data.n_cells


def mean_bernoulli_odds(data: SparseData, factors: Factors) -> float:
    """Visits every cell, one slice of mode 0 at a time."""
    first, *middle, last = factors
    K = np.ones((1, last.shape[1]))
    for A in middle:
        K = (K[:, None] * A).reshape(-1, K.shape[1])
    every = sum(float(np.log1p((K * row) @ last.T).sum()) for row in first)
    return (every - log_at_nonzeros(data, factors)) / data.n_cells


MEAN_LOSS = {"poisson": mean_poisson, "bernoulli-odds": mean_bernoulli_odds}


class StoppedError(Exception):
    """Ends pyttb's run from inside; most of its solvers have neither callback nor time limit."""


class Watch:
    """Counts the seconds of a fit, not those of the exact losses taken during it."""

    def __init__(self, data: SparseData, loss: str, max_seconds: float) -> None:
        self.data, self.mean_loss, self.max_seconds = data, MEAN_LOSS[loss], max_seconds
        self.trace: list[tuple[float, float]] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self.spent, self.resumed = 0.0, time.perf_counter()
        with contextlib.suppress(StoppedError), contextlib.redirect_stdout(io.StringIO()):
            yield

    def look(self, model: Any) -> None:
        """Note the loss of a ktensor, and stop the run if its time is over."""
        self.spent += time.perf_counter() - self.resumed
        self.trace.append((self.spent, self.mean_loss(self.data, plain_factors(model))))
        if self.spent > self.max_seconds:
            raise StoppedError
        self.resumed = time.perf_counter()


def plain_factors(model: Any) -> Factors:
    """Factors of a pyttb or GenTen ktensor, its weights in mode 0."""
    first, *others = (np.array(A) for A in model.factor_matrices)
    return [first * np.asarray(model.weights), *others]


def pyttb_apr(
    data: SparseData,
    start: Factors,
    algorithm: Literal["mu", "pdnr", "pqnr"],
    max_seconds: float = 120.0,
    **settings: Any,
) -> PeerRun:
    """cp_apr by ``"mu"``, ``"pdnr"`` or ``"pqnr"``: Poisson.

    One call, looked at after every outer iteration: calling again from the last point would restart
    the inexact Newton tolerances and the index sets of pdnr and pqnr. (pqnr fails with an assertion
    of its own on Chicago 2022.)
    """
    import pyttb as ttb

    watch = Watch(data, "poisson", max_seconds)

    class WatchedKtensor(ttb.ktensor):
        def copy(self) -> ttb.ktensor:
            return WatchedKtensor(self.factor_matrices, self.weights)

        def normalize(self, *args: Any, mode: int | None = None, **kwargs: Any) -> ttb.ktensor:
            super().normalize(*args, mode=mode, **kwargs)
            # cp_apr normalises a single mode when it is done with it, the last one last.
            if mode == self.ndims - 1:
                watch.look(self)
            return self

    # Its sums are compiled on first use, which should not count.
    tiny = ttb.sptensor(np.zeros((1, 3), dtype=np.int64), np.ones((1, 1)), (2, 2, 2))
    with contextlib.redirect_stdout(io.StringIO()):
        ttb.cp_apr(tiny, 1, algorithm, maxiters=2, printitn=0)
    X = ttb.sptensor(data.indices, data.values[:, None], data.shape)
    init = WatchedKtensor(start)
    with watch.running():
        ttb.cp_apr(X, start[0].shape[1], algorithm, init=init, printitn=0, **settings)
    return PeerRun(described(f"pyttb cp_apr {algorithm}", settings), watch.trace)


def pyttb_adam(
    data: SparseData,
    start: Factors,
    loss: str,
    rate: float,
    max_seconds: float = 120.0,
    seed: int = 0,
    on_its_way: bool = True,
) -> PeerRun:
    """gcp_opt with Adam and its default stratified sampler.

    It is looked at after every epoch, or at its end only.
    """
    import pyttb as ttb
    from pyttb.gcp.handles import Objectives
    from pyttb.gcp.optimizers import Adam

    watch = Watch(data, loss, max_seconds)

    class WatchedAdam(Adam):
        steps = 0

        def update_step(self, model, gradient, lower_bound):  # type: ignore[no-untyped-def]
            factors, step = super().update_step(model, gradient, lower_bound)
            self.steps += 1
            over = time.perf_counter() - watch.resumed > max_seconds
            if (on_its_way or over) and self.steps % self._epoch_iters == 0:
                watch.look(ttb.ktensor(factors))
            return factors, step

    X = ttb.sptensor(data.indices, data.values[:, None], data.shape)
    objective = Objectives[loss.replace("-", "_").upper()]
    init = ttb.ktensor(start)
    np.random.seed(seed)  # noqa: NPY002 (pyttb draws from the global state)
    with watch.running():
        model, _, _ = ttb.gcp_opt(
            X, start[0].shape[1], objective, WatchedAdam(rate=rate, printitn=0), init, printitn=0
        )
        # A last epoch that failed was taken back.
        watch.look(model)
    return PeerRun(f"pyttb gcp_opt, Adam, rate={rate:g}, stratified, defaults", watch.trace)


def pyttb_lbfgsb(
    data: SparseData, start: Factors, loss: str, max_seconds: float = 120.0, **settings: Any
) -> PeerRun:
    """gcp_opt with L-BFGS-B on the exact loss of the dense array, looked at after every step."""
    import pyttb as ttb
    from pyttb.gcp.handles import Objectives
    from pyttb.gcp.optimizers import LBFGSB

    watch = Watch(data, loss, max_seconds)
    rank = start[0].shape[1]
    cuts = np.cumsum([size * rank for size in data.shape])[:-1]

    def look(flat: np.ndarray) -> None:
        pieces = zip(np.split(flat, cuts), data.shape, strict=True)
        watch.look(ttb.ktensor([p.reshape((n, rank), order="F") for p, n in pieces]))

    dense = np.zeros(data.shape)
    dense[tuple(data.indices.T)] = data.values
    objective = Objectives[loss.replace("-", "_").upper()]
    X, init = ttb.tensor(dense), ttb.ktensor([A.copy() for A in start])
    with watch.running():
        optimizer = LBFGSB(callback=look, iprint=-1, **settings)
        ttb.gcp_opt(X, rank, objective, optimizer, init=init, printitn=0)
    return PeerRun(described("pyttb gcp_opt, L-BFGS-B", settings), watch.trace)


def genten_lbfgsb(
    data: SparseData, start: Factors, max_iterations: int = 1000, **settings: Any
) -> PeerRun:
    """cp_opt, L-BFGS-B on the exact Poisson loss. It has no time limit, only one of iterations.

    GenTen notes time and loss of every iteration; its loss is ours but for the constant inside the
    logarithm, 1e-10. The last point of the trace is ours.
    """
    gt = genten()
    chosen = {"memory": 100, "ftol": 1e-10, "gtol": 1e-5, **settings}
    seconds, factors, history = genten_call(
        gt.cp_opt, data, start, "poisson", maxiters=max_iterations, lower=0.0, **chosen
    )
    points = [history[i] for i in range(history.size() - 1)]
    trace = [(p.cum_time, p.residual / data.n_cells) for p in points]
    trace.append((seconds, mean_poisson(data, factors)))
    return PeerRun(described("GenTen cp_opt, L-BFGS-B", {**chosen, **threads()}), trace)


def genten_sgd(
    data: SparseData,
    start: Factors,
    loss: str,
    max_seconds: float = 120.0,
    epochs: Sequence[int] = EPOCHS,
    **settings: Any,
) -> PeerRun:
    """gcp_sgd with Adam. Separate full calls with growing limits, until one takes max_seconds.

    GenTen cannot be looked at from inside, and notes estimated losses only. By default it would
    sample as many cells a step as there are nonzeros, a minute an epoch on Chicago 2022; two
    thousand nonzeros and zeros each, fused with the gradient, were the best of those tried there.
    """
    gt = genten()
    chosen = {
        "rate": 3e-3,
        "sampling_type": gt.SemiStratified,
        "fuse": True,
        "num_samples_nonzeros_grad": 2000,
        "num_samples_zeros_grad": 2000,
        "gcp_seed": 1,
        **settings,
    }
    trace: list[tuple[float, float]] = []
    for limit in epochs:
        seconds, factors, history = genten_call(
            gt.gcp_sgd, data, start, loss.removesuffix("-odds"), maxiters=limit, **chosen
        )
        trace.append((seconds, MEAN_LOSS[loss](data, factors)))
        stopped_itself = history.size() <= limit
        if seconds > max_seconds or stopped_itself:
            break
    return PeerRun(described("GenTen gcp_sgd, Adam", {**chosen, **threads()}), trace)


def genten() -> Any:
    """Import GenTen; OpenMP reads its settings then."""
    os.environ.setdefault("OMP_PROC_BIND", "false")
    import pygenten

    return pygenten


def genten_method(settings: str) -> Method:
    return Method("pygenten", settings, str(threads()["threads"]))


def threads() -> dict[str, Any]:
    """What OpenMP gives GenTen; it has no setting of its own."""
    return {"threads": os.environ.get("OMP_NUM_THREADS", os.cpu_count())}


def genten_call(
    solver: Callable[..., Any], data: SparseData, start: Factors, loss: str, **settings: Any
) -> tuple[float, Factors, Any]:
    """Seconds, factors and the history of one call."""
    gt = genten()
    rank = start[0].shape[1]
    X = gt.Sptensor(data.shape, data.indices.astype(np.uint64), data.values)
    init = gt.Ktensor(np.ones(rank), [A.copy() for A in start])
    with contextlib.redirect_stdout(io.StringIO()):
        began = time.perf_counter()
        model, _, history = solver(
            X, init=init, rank=rank, loss_function_type=loss, printitn=0, **settings
        )
        seconds = time.perf_counter() - began
    return seconds, plain_factors(model), history


def described(name: str, settings: dict[str, Any]) -> str:
    return ", ".join([name, *(f"{key}={value}" for key, value in settings.items())])
