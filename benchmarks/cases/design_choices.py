"""What the choices of the design page cost or save, each next to its alternative, in one run.

Counts 100³, rank 20, one thread, unless a row says otherwise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

import numba
import numpy as np

from benchmarks.harness import interleaved
from benchmarks.results import Method, Result, Row, Spread
from smartcpd import SmartCPD, datasets, losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.opening import as_storage
from smartcpd._kernels.compiling import FASTMATH
from smartcpd._objectives.dense import DenseObjective

SEED = 960_000


def ratio(what: str, slow: str, fast: str, tasks: dict[str, Callable[[], object]], n: int) -> Row:
    """The row that compares two tasks, run in turn."""
    found = interleaved(tasks, n)
    return Row(
        "Times",
        {
            "choice": what,
            "alternative": slow,
            "times longer": Spread.ratio(found[slow], found[fast]),
        },
    )


def block_tasks(n: int = 1 << 16) -> dict[str, Callable[[], object]]:
    """The derivative of a loss over an array: behind a signature, and compiled into a loop."""
    rng = np.random.default_rng(SEED)
    x, m, out = rng.poisson(1.0, n).astype(float), rng.random(n) + 0.1, np.empty(n)
    loss = losses.get("poisson")
    block = loss.derivative_block("float64")

    @numba.njit(error_model="numpy", fastmath=FASTMATH)
    def fused(x, m, out):
        for i in range(x.size):
            out[i] = 1.0 - x[i] / (m[i] + 1e-9)

    return {
        "a block": lambda: block(x, m, loss.params, out),
        "written into the loop": lambda: fused(x, m, out),
    }


def run(quick: bool = False) -> Iterator[Result]:
    repeats = 5 if quick else 15
    yield Method("smartcpd", "one thread", 1)
    X, truth = datasets.count((100, 100, 100), 20, random_state=SEED)
    with threads.limited_to(1):
        yield ratio(
            "losses are compiled blocks of one signature",
            "a block",
            "written into the loop",
            block_tasks(),
            20 * repeats,
        )
        objective = DenseObjective(as_storage(X), losses.get("poisson"), 1)
        A = stack(truth)
        passes = {
            "passes in float64": lambda: objective.gradient(A),
            "passes in float32": lambda: objective.gradient(A.astype("float32")),
        }
        yield ratio(
            "early passes are in float32", "passes in float64", "passes in float32", passes, repeats
        )
    with tempfile.TemporaryDirectory() as folder:

        def fit(**more: object) -> object:
            return SmartCPD(20, "poisson", random_state=0, n_threads=1, **more).fit(X)

        yield ratio(
            "a journal of stages makes fits resumable",
            "checkpoints every second",
            "no checkpoints",
            {
                "no checkpoints": fit,
                "checkpoints every second": lambda: fit(checkpoint=folder, checkpoint_every=1.0),
            },
            repeats,
        )
