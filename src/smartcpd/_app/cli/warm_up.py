"""``smartcpd warm-up``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

from smartcpd import losses
from smartcpd._app.cli.console import say, stdout
from smartcpd._app.cli.options import Quiet
from smartcpd._data.storage import SparseTensor
from smartcpd._fitting.fit import fit
from smartcpd._inference.examination import Examination
from smartcpd._kernels.kept_code import folder
from smartcpd.losses import Data, Loss

USUAL = ("poisson", "bernoulli-odds", "gaussian", "gamma")
METHODS = ("smd", "mm", "md", "lbfgs", "ggn", "row-newton", "gcp-adam")
SHAPE, RANK = (20, 18, 16), 2
EXAMPLES = """\
Examples:

smartcpd warm-up

smartcpd warm-up --all
"""


def warm_up(
    every: Annotated[
        bool, typer.Option("--all", help="Every loss and the methods, not the usual losses alone.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compile what fits need before the first one, for images and shared machines.

    It makes small fits of dense and of sparse data, one for each loss, and what a report says of
    them. What they compile is kept where later runs of this user find it.
    """
    began = time.perf_counter()
    for name, X, loss, more in _fits(every):
        start = time.perf_counter()
        found = fit(X, RANK, loss, random_state=0, progress=False, **more)
        if "solver" not in more:
            Examination.of(found).figures()
        say(f"{name}: {time.perf_counter() - start:.1f} s", quiet)
    seconds = time.perf_counter() - began
    stdout().print(f"Compiled code is in {folder()} ({seconds:.1f} s).")


def _fits(every: bool) -> Iterator[tuple[str, Any, Loss, dict[str, Any]]]:
    """Return small fits that need what larger ones need: a name, data, a loss, further choices."""
    for name in losses.names() if every else USUAL:
        loss = losses.get(losses.registry.classes[name].spelled or name)
        X = _data(loss)
        yield f"{loss}, dense", X, loss, {}
        if loss.allows_zeros:
            cells, values = np.argwhere(X)[::-1], X[X != 0][::-1]  # tables are not in order either
            yield f"{loss}, sparse", SparseTensor(cells, values, X.shape), loss, {}
    poisson = losses.get("poisson")
    counts = _data(poisson).astype(np.int64)
    seen = np.arange(counts.size).reshape(SHAPE) % 9 > 0
    yield "poisson, dense with missing cells", counts, poisson, {"mask": seen}
    if every:
        for method in METHODS:
            yield method, _data(poisson), poisson, {"solver": method, "max_epochs": 2}


def _data(loss: Loss) -> np.ndarray:
    """Return data of two components that the loss can describe."""
    rng = np.random.default_rng(0)
    factors = [rng.gamma(0.5, size=(size, RANK)) + 0.1 for size in SHAPE]
    mean = np.einsum("ir,jr,kr->ijk", *factors)
    source = loss if loss.knows("simulate") else losses.get("gamma")
    X = np.asarray(source.simulate(mean, rng))
    return np.minimum(X, 255).astype(np.uint8) if loss.data in (Data.COUNTS, Data.BINARY) else X
