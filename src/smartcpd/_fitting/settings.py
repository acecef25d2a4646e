"""The settings of a fit: what the user may ask for beside the problem itself, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._common.parameters import check_integer, check_number, checked_jobs
from smartcpd._methods.base import Settings
from smartcpd._problem.problem import Problem
from smartcpd._problem.stopping import Stopping
from smartcpd.errors import IncompatibleError, InvalidParameterError

MAX_EPOCHS = 5000
TOL = 0.02
CHECKPOINT_EVERY = 30.0
OF_SAMPLING = {
    "mirror": "auto",
    "step": "auto",
    "sampler": "auto",
    "n_fibers": None,
    "inner_iterations": 1,
    "fresh_fibers": False,
    "averaging": True,
}
"""The parameters of stochastic steps, as they are where the user leaves them alone."""
TAKEN = (
    "n_fibers",
    "inner_iterations",
    "fresh_fibers",
    "averaging",
    "max_epochs",
    "max_time",
    "tol",
    "kkt_tol",
    "change_tol",
    "dtype",
    "overcomplete",
    "effort",
)
"""The parameters of a fit that `make_settings` takes as they are."""


def settings_of(problem: Problem, parameters: Mapping[str, Any]) -> Settings:
    """Return the settings that the parameters of a fit ask for."""
    return make_settings(
        problem,
        **{name: parameters[name] for name in TAKEN},
        # Restarts that run side by side each keep to one thread.
        n_threads=parameters["n_threads"] if parameters["n_jobs"] == 1 else 1,
        n_init=1 if parameters["consensus"] else int(parameters["n_init"]),
        stochastic=asks_for_sampling(parameters),
    )


def make_settings(
    problem: Problem,
    *,
    n_fibers: int | None = None,
    inner_iterations: int = 1,
    fresh_fibers: bool = False,
    averaging: bool = True,
    max_epochs: int = MAX_EPOCHS,
    max_time: float | None = None,
    tol: float = TOL,
    kkt_tol: float = 0.0,
    change_tol: float = 0.0,
    dtype: str = "float64",
    n_threads: int | None = None,
    overcomplete: float = 1.5,
    n_init: int = 1,
    effort: float = 1.0,
    stochastic: bool = False,
) -> Settings:
    """Check everything about a fit that is not the problem itself."""
    check_integer("inner_iterations", inner_iterations, at_least=1)
    check_integer("max_epochs", max_epochs, at_least=1)
    if n_fibers is not None:
        check_integer("n_fibers", n_fibers, at_least=1)
    if max_time is not None:
        check_number("max_time", max_time, at_least=1e-3)
    check_number("effort", effort, at_least=0)
    check_number("tol", tol, at_least=0)
    check_number("kkt_tol", kkt_tol, at_least=0)
    check_number("change_tol", change_tol, at_least=0)
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise InvalidParameterError(f"dtype must be 'float32' or 'float64'; got {dtype!r}.")
    return Settings(
        stopping=Stopping(tol, kkt_tol, int(max_epochs), max_time, change_tol),
        n_fibers=problem.n_fibers(n_fibers if n_fibers is None else int(n_fibers)),
        inner_iterations=int(inner_iterations),
        fresh_fibers=bool(fresh_fibers),
        averaging=bool(averaging),
        dtype=np.dtype(dtype).name,
        n_threads=threads.resolve(n_threads),
        overcomplete=overcomplete,
        n_init=n_init,
        effort=float(effort),
        stochastic=stochastic,
    )


def check_runs(parameters: Mapping[str, Any]) -> None:
    """Check what is asked of the runs of a fit: their number, their jobs and their checkpoints."""
    check_integer("n_init", parameters["n_init"], at_least=1)
    if parameters["consensus"] and parameters["n_init"] == 1:
        raise IncompatibleError(
            "consensus=True compares starts with one another, and n_init=1 is a single one. Use "
            "n_init=5, say."
        )
    checked_jobs(parameters["n_jobs"])
    check_number("overcomplete", parameters["overcomplete"], at_least=1)
    check_number("checkpoint_every", parameters["checkpoint_every"], at_least=0)
    if parameters["resume"] and parameters["checkpoint"] is None:
        raise IncompatibleError("resume=True needs the folder of a checkpoint: checkpoint=path.")


def asks_for_sampling(parameters: Mapping[str, Any]) -> bool:
    """Whether the user chose how stochastic steps are made."""
    return any(parameters.get(name, usual) != usual for name, usual in OF_SAMPLING.items())


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a Generator, scikit-learn's RandomState, or nothing."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"random_state must be a whole number >= 0, a Generator or None; "
            f"got {random_state!r} ({error})."
        ) from None
