"""The peers pyttb, GenTen and TensorLy: the results that each has over time, from a given start.

The clock covers a peer's own call and nothing else: building its tensor and keeping its factors do
not count. pyttb is looked at from inside; GenTen reports its own losses, and both it and TensorLy
are called again with growing limits where they cannot be looked at.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any, Literal, NamedTuple

import numpy as np

from smartcpd._app.paper.contenders import Factors, Snapshot
from smartcpd._data.storage import SparseTensor

PYTTB_NAMES = {"poisson": "POISSON", "bernoulli-odds": "BERNOULLI_ODDS", "gamma": "GAMMA"}
NO_LIMIT = 3600.0
GENTEN_LBFGSB = {"memory": 100, "ftol": 1e-10, "gtol": 1e-5}
GENTEN_SGD = {
    "rate": 3e-3,
    "fuse": True,
    "num_samples_nonzeros_grad": 2000,
    "num_samples_zeros_grad": 2000,
    "gcp_seed": 1,
}
"""Settings of GenTen's Adam. By default it would sample as many cells a step as there are nonzeros;
two thousand nonzeros and zeros each, fused with the gradient, were the best of those tried on
Chicago 2022.
"""


class SparseData(NamedTuple):
    """The nonzeros of a tensor, each cell once, as every peer can take them."""

    indices: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)


@singledispatch
def sparse_data(X: np.ndarray | SparseTensor) -> SparseData:
    """Return the nonzeros of a dense or sparse tensor."""
    raise TypeError(f"{type(X).__name__} is no tensor that the peers take.")


@sparse_data.register
def _(X: np.ndarray) -> SparseData:
    indices = np.ascontiguousarray(np.argwhere(X))
    return SparseData(indices, X[tuple(indices.T)].astype(np.float64), X.shape)


@sparse_data.register
def _(X: SparseTensor) -> SparseData:
    indices = np.stack(X.indices, axis=1).astype(np.int64)
    return SparseData(indices, X.values.astype(np.float64), X.shape)


def start_for(data: SparseData, rank: int, seed: int) -> Factors:
    """Return uniform factors, balanced, scaled so that the mean of the model is the mean of the
    data.
    """
    # The seeds have a stream of their own: planted data of the same seed has factors from that
    # seed's first numbers.
    (rng,) = np.random.default_rng(seed).spawn(1)
    factors = [rng.random((size, rank)) for size in data.shape]
    level = np.prod([A.mean(axis=0) for A in factors], axis=0).sum()
    scale = data.values.sum() / data.n_cells / level
    return [A * scale ** (1 / len(factors)) for A in factors]


def result_after(seconds: float, epoch: int, factors: Factors) -> Snapshot:
    """Return a snapshot of a peer, which tells neither its loss nor how many entries it read."""
    return Snapshot(seconds, math.nan, epoch, math.nan, factors)


class StoppedError(Exception):
    """Ends pyttb's run from inside; most of its solvers have neither callback nor time limit."""


class Watch:
    """Counts the seconds of a fit, not those in which its factors are copied."""

    def __init__(self, max_seconds: float) -> None:
        self.max_seconds = max_seconds
        self.snapshots: list[Snapshot] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        # pyttb warns of copies that it has to make.
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)
        self.spent, self.resumed = 0.0, time.perf_counter()
        try:
            with contextlib.suppress(StoppedError), contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            logging.getLogger().setLevel(level)

    @property
    def now(self) -> float:
        return self.spent + time.perf_counter() - self.resumed

    def look(self, factors: Factors) -> None:
        """Keep copies of the factors, and stop the run if its time is over."""
        self.spent = self.now
        self.snapshots.append(result_after(self.spent, len(self.snapshots), factors))
        if self.spent > self.max_seconds:
            raise StoppedError
        self.resumed = time.perf_counter()


def plain_factors(weights: Any, factors: Iterable[Any]) -> Factors:
    """Return copies of the factors of a peer's model, with its weights in mode 0."""
    first, *others = (np.array(A) for A in factors)
    return [first if weights is None else first * np.asarray(weights), *others]


def pyttb_tensor(data: SparseData | np.ndarray) -> Any:
    import pyttb as ttb

    if isinstance(data, SparseData):
        return ttb.sptensor(data.indices, data.values[:, None], data.shape)
    return ttb.tensor(data.astype(np.float64))


def pyttb_apr(
    data: SparseData,
    start: Factors,
    algorithm: Literal["mu", "pdnr", "pqnr"],
    max_seconds: float = NO_LIMIT,
    **settings: Any,
) -> list[Snapshot]:
    """Run cp_apr by ``"mu"``, ``"pdnr"`` or ``"pqnr"``, for the Poisson loss.

    It is one call, looked at after every outer iteration: calling again from the last point would
    restart the inexact Newton tolerances and the index sets of pdnr and pqnr.
    """
    import pyttb as ttb

    watch = Watch(max_seconds)

    class WatchedKtensor(ttb.ktensor):
        def copy(self) -> ttb.ktensor:
            return WatchedKtensor(self.factor_matrices, self.weights)

        def normalize(self, *args: Any, mode: int | None = None, **kwargs: Any) -> ttb.ktensor:
            super().normalize(*args, mode=mode, **kwargs)
            # cp_apr normalises a single mode when it is done with it, the last one last.
            if mode == self.ndims - 1:
                watch.look(plain_factors(self.weights, self.factor_matrices))
            return self

    # The sums of the loss are compiled on first use, which should not count.
    tiny = ttb.sptensor(np.zeros((1, 3), dtype=np.int64), np.ones((1, 1)), (2, 2, 2))
    with contextlib.redirect_stdout(io.StringIO()):
        ttb.cp_apr(tiny, 1, algorithm, maxiters=2, printitn=0)
    X, init = pyttb_tensor(data), WatchedKtensor(start)
    with watch.running():
        ttb.cp_apr(X, start[0].shape[1], algorithm, init=init, printitn=0, **settings)
    return watch.snapshots


def pyttb_gcp(
    data: SparseData | np.ndarray, start: Factors, loss: str, optimizer: Any, watch: Watch
) -> list[Snapshot]:
    """Run gcp_opt with an optimizer that calls the watch on its way."""
    import pyttb as ttb
    from pyttb.gcp.handles import Objectives

    X, init = pyttb_tensor(data), ttb.ktensor([A.copy() for A in start])
    objective = Objectives[PYTTB_NAMES[loss]]
    with watch.running():
        model, _, _ = ttb.gcp_opt(X, start[0].shape[1], objective, optimizer, init, printitn=0)
        # A last epoch that failed was taken back.
        watch.look(plain_factors(model.weights, model.factor_matrices))
    return watch.snapshots


def pyttb_adam(
    data: SparseData | np.ndarray,
    start: Factors,
    loss: str,
    rate: float,
    max_seconds: float = NO_LIMIT,
    seed: int = 0,
    on_its_way: bool = True,
) -> list[Snapshot]:
    """Run gcp_opt with Adam and its default sampler, looked at after every epoch or at its end
    only.
    """
    from pyttb.gcp.optimizers import Adam

    watch = Watch(max_seconds)

    class WatchedAdam(Adam):
        steps = 0

        def update_step(self, model, gradient, lower_bound):
            factors, step = super().update_step(model, gradient, lower_bound)
            self.steps += 1
            over = time.perf_counter() - watch.resumed > max_seconds
            if (on_its_way or over) and self.steps % self._epoch_iters == 0:
                watch.look([np.array(A) for A in factors])
            return factors, step

    # pyttb draws from the global state, which is put back.
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        return pyttb_gcp(data, start, loss, WatchedAdam(rate=rate, printitn=0), watch)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def pyttb_lbfgsb(
    X: np.ndarray,
    start: Factors,
    loss: str,
    max_seconds: float = NO_LIMIT,
    iterations: int = 1000,
) -> list[Snapshot]:
    """Run gcp_opt with L-BFGS-B on all entries of a dense tensor, looked at after every
    iteration.
    """
    from pyttb.gcp.optimizers import LBFGSB

    watch = Watch(max_seconds)
    cuts = np.cumsum([A.size for A in start])[:-1]

    def look(flat: np.ndarray) -> None:
        pieces = zip(np.split(flat, cuts), X.shape, strict=True)
        watch.look([p.reshape((n, -1), order="F").copy() for p, n in pieces])

    return pyttb_gcp(X, start, loss, LBFGSB(maxiter=iterations, callback=look, iprint=-1), watch)


def genten_lbfgsb(
    data: SparseData, start: Factors, max_iterations: int = 1000, **settings: Any
) -> list[Snapshot]:
    """Run cp_opt: L-BFGS-B on the exact Poisson loss, with a limit of iterations but none of time.

    GenTen notes time and loss of every iteration, not the factors; its loss is ours but for the
    constant inside the logarithm, 1e-10.
    """
    chosen = {**GENTEN_LBFGSB, **settings}
    seconds, factors, history = genten_call(
        genten().cp_opt, data, start, "poisson", maxiters=max_iterations, lower=0.0, **chosen
    )
    points = [history[i] for i in range(history.size() - 1)]
    found = [
        Snapshot(p.cum_time, math.nan, n, p.residual / data.n_cells, None)
        for n, p in enumerate(points)
    ]
    return [*found, result_after(seconds, len(found), factors)]


def genten_sgd(
    data: SparseData,
    start: Factors,
    loss: str,
    max_seconds: float = NO_LIMIT,
    epochs: Sequence[int] = (5, 10, 20, 30, 40, 60, 80, 100),
    **settings: Any,
) -> list[Snapshot]:
    """Run gcp_sgd with Adam, in separate full calls with growing limits until one takes
    max_seconds.

    GenTen cannot be looked at from inside, and notes estimated losses only.
    """
    gt = genten()
    chosen = {"sampling_type": gt.SemiStratified, **GENTEN_SGD, **settings}
    found: list[Snapshot] = []
    for limit in epochs:
        seconds, factors, history = genten_call(
            gt.gcp_sgd, data, start, loss.removesuffix("-odds"), maxiters=limit, **chosen
        )
        found.append(result_after(seconds, limit, factors))
        stopped_itself = history.size() <= limit
        if seconds > max_seconds or stopped_itself:
            break
    return found


def genten() -> Any:
    """Import GenTen, with the settings that OpenMP reads at that moment."""
    os.environ.setdefault("OMP_PROC_BIND", "false")
    import pygenten

    return pygenten


def genten_call(
    solver: Callable[..., Any], data: SparseData, start: Factors, loss: str, **settings: Any
) -> tuple[float, Factors, Any]:
    """Return seconds, factors and the history of one call."""
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
    return seconds, plain_factors(model.weights, model.factor_matrices), history


def tensorly_hals(
    X: np.ndarray,
    start: Factors,
    max_seconds: float = NO_LIMIT,
    sweeps: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
) -> list[Snapshot]:
    """Run nonnegative least squares by HALS, in separate full calls with growing limits."""
    import tensorly
    from tensorly.decomposition import non_negative_parafac_hals

    tensor = tensorly.tensor(X.astype(np.float64))
    found: list[Snapshot] = []
    for limit in sweeps:
        init = tensorly.cp_tensor.CPTensor((None, [A.copy() for A in start]))
        began = time.perf_counter()
        model = non_negative_parafac_hals(
            tensor, start[0].shape[1], n_iter_max=limit, init=init, tol=0
        )
        seconds = time.perf_counter() - began
        found.append(result_after(seconds, limit, plain_factors(model.weights, model.factors)))
        if seconds > max_seconds:
            break
    return found
