"""The lines that ``--peers`` adds to a figure, one for each peer that is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

from smartcpd._app.paper import peers
from smartcpd._app.paper.contenders import Contender, Snapshot, Task

RATE = 1e-2
"""The learning rate of pyttb's Adam, the better of 1e-3 and 1e-2 on counts."""
GENTEN_EPOCHS = (1, 2, 5, 10, 20, 40, 80)
LBFGSB = "cp_opt (L-BFGS-B, memory 100)"


def dense(loss: str) -> tuple[Contender, ...]:
    """Return peers for a dense tensor; GenTen takes dense counts as sparse ones, TensorLy fits
    least squares.
    """
    counts = loss == "poisson"
    adam = f"gcp_opt, rate {RATE:g}, its own sampler"
    return (
        *_line("pyttb L-BFGS-B", "pyttb", "gcp_opt on all entries", _pyttb_lbfgsb),
        *_line("pyttb Adam", "pyttb", adam, _pyttb_adam),
        *_line("GenTen", "pygenten", f"{LBFGSB} on nonzeros", _genten_lbfgsb, counts),
        *_line("TensorLy", "tensorly", "non_negative_parafac_hals, least squares", _tensorly),
    )


def sparse(loss: str) -> tuple[Contender, ...]:
    """Return peers for a sparse tensor of counts or events."""
    counts = loss == "poisson"
    return (
        *_line("pyttb CP-APR", "pyttb", "cp_apr pdnr", _pyttb_apr, counts),
        *_line("pyttb Adam", "pyttb", "gcp_opt, rate 0.001, stratified", _pyttb_sparse),
        *_line("GenTen", "pygenten", LBFGSB, _genten_lbfgsb, counts),
        *_line("GenTen", "pygenten", "gcp_sgd (Adam), semi-stratified", _genten_sgd, not counts),
    )


def _line(
    name: str,
    package: str,
    how: str,
    run: Callable[[Task, float], list[Snapshot]],
    serves: bool = True,
) -> list[Contender]:
    """Return the line of a peer, or none if it does not serve the loss or is not installed."""
    if not serves or importlib.util.find_spec(package) is None:
        return []
    settings = f"{package} {version(package)}, {how}, random start"

    def limited(task: Task) -> list[Snapshot]:
        return run(task, task.budget.seconds)

    return [Contender(name, settings, limited, warm_up_seconds=0.0)]


def _started(task: Task) -> tuple[peers.SparseData, list[np.ndarray]]:
    data = peers.sparse_data(task.X)
    return data, peers.start_for(data, task.rank, task.seed)


def _pyttb_lbfgsb(task: Task, limit: float) -> list[Snapshot]:
    return peers.pyttb_lbfgsb(np.asarray(task.X), _started(task)[1], task.loss, limit)


def _pyttb_adam(task: Task, limit: float) -> list[Snapshot]:
    start = _started(task)[1]
    return peers.pyttb_adam(np.asarray(task.X), start, task.loss, RATE, limit, task.seed)


def _pyttb_sparse(task: Task, limit: float) -> list[Snapshot]:
    data, start = _started(task)
    return peers.pyttb_adam(data, start, task.loss, 1e-3, limit, task.seed)


def _pyttb_apr(task: Task, limit: float) -> list[Snapshot]:
    return peers.pyttb_apr(*_started(task), "pdnr", limit)


def _genten_lbfgsb(task: Task, limit: float) -> list[Snapshot]:
    """Run as many iterations as fit into the limit, judged by a few: GenTen has no clock of its
    own.
    """
    data, start = _started(task)
    few = peers.genten_lbfgsb(data, start, max_iterations=5)
    iterations = int(np.clip(5 * limit / max(few[-1].time, 1e-6), 5, 1000))
    return peers.genten_lbfgsb(data, start, max_iterations=iterations)


def _genten_sgd(task: Task, limit: float) -> list[Snapshot]:
    return peers.genten_sgd(*_started(task), task.loss, limit, epochs=GENTEN_EPOCHS)


def _tensorly(task: Task, limit: float) -> list[Snapshot]:
    return peers.tensorly_hals(np.asarray(task.X), _started(task)[1], limit)
