"""A whole fit: parameters in, the best model of several starts out."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._data.labelled import taken_off
from smartcpd._data.labels import Mode
from smartcpd._fitting.consensus.starts import consensus_of
from smartcpd._fitting.converters import as_model
from smartcpd._fitting.exposed import fit_exposed
from smartcpd._fitting.found import Fit, Report
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.named_modes import by_number, groups_by_number
from smartcpd._fitting.open_loss import fit_open
from smartcpd._fitting.other_units import OtherUnits
from smartcpd._fitting.plan import Plan
from smartcpd._fitting.progress import Progress
from smartcpd._fitting.settings import CHECKPOINT_EVERY, MAX_EPOCHS, TOL, check_runs, generator
from smartcpd._fitting.shares import places_by_share
from smartcpd._fitting.unobserved import without_unobserved_rows
from smartcpd._fitting.warning import warn_of
from smartcpd._kernels.notices import compilation
from smartcpd._kernels.uninterrupted import interrupts_recognised
from smartcpd._methods.base import Epoch, Method
from smartcpd._problem.checkpoints.identity import Identity
from smartcpd._problem.checkpoints.journal import entropy_in, opened
from smartcpd._problem.problem import Problem
from smartcpd._strategies import registry
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.restarts import Scored
from smartcpd.errors import IncompatibleError

OF_THE_PROBLEM = (
    "rank",
    "loss",
    "mirror",
    "constraint",
    "step",
    "sampler",
    "absent",
    "mask",
    "weights",
    "max_memory",
    "fixed",
    "fixed_components",
    "same",
)
"""The parameters that say what is fitted; the others say how."""
NOT_IDENTIFYING = {
    "X",
    "mask",
    "weights",
    "exposure",
    "random_state",
    "max_time",
    "n_jobs",
    "n_threads",
    "callback",
    "progress",
    "client",
    "checkpoint",
    "checkpoint_every",
    "resume",
}
"""Parameters that may differ when a fit is resumed, or that are compared separately."""


def fit(
    X: Any,
    rank: int,
    loss: Any = "auto",
    *,
    mirror: Any = "auto",
    constraint: Any = "auto",
    fixed: Any = None,
    fixed_components: Any = None,
    same: Any = None,
    step: Any = "auto",
    solver: str | Strategy | Method = "auto",
    sampler: Any = "auto",
    absent: str = "zero",
    n_fibers: int | None = None,
    inner_iterations: int = 1,
    fresh_fibers: bool = False,
    averaging: bool = True,
    overcomplete: float = 1.5,
    max_epochs: int = MAX_EPOCHS,
    max_time: float | None = None,
    tol: float = TOL,
    kkt_tol: float = 0.0,
    change_tol: float = 0.0,
    init: Any = "random",
    n_init: int = 1,
    effort: float = 1.0,
    consensus: bool = False,
    n_jobs: int = 1,
    n_threads: int | None = None,
    max_memory: str | int | None = None,
    random_state: Any = None,
    dtype: str = "float64",
    callback: Callable[[Report], Any] | None = None,
    progress: bool | str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = CHECKPOINT_EVERY,
    resume: bool = False,
    mask: Any = None,
    weights: Any = None,
    exposure: Any = None,
    client: Any = None,
) -> Fit:
    """Fit a CP model; see `smartcpd.SmartCPD` and its `fit` for the parameters."""
    parameters = {name: value for name, value in locals().items() if name in FIT_PARAMETERS}
    own = registry.own_defaults(registry.get(solver), parameters, FIT_PARAMETERS)
    if own:
        return fit(X, client=client, **(parameters | own))
    tensor, modes = taken_off(X)
    parameters |= unlabelled(parameters, modes)
    if exposure is not None:
        if client is not None:
            raise IncompatibleError(
                "exposure= is for data in this process, and client= holds it elsewhere. Fit "
                "without one of them; rows of a model can be divided by the exposure of a mode."
            )
        return fit_exposed(tensor, modes, parameters, fit).labelled(modes)
    if client is not None:
        from smartcpd.distributed.fitting import fit_on

        return fit_on(client, tensor, parameters, fit).labelled(modes)
    known = None if loss == "auto" else losses.get(loss)
    if known is not None and known.is_open:
        return fit_open(tensor, known, parameters, fit).labelled(modes)
    check_runs(parameters)
    problem = problem_of(tensor, parameters)
    if problem.unit != 1.0:
        return OtherUnits(problem).fit(parameters, fit).labelled(modes)
    return _run(Plan.of(problem, parameters), parameters).labelled(modes)


FIT_PARAMETERS = {
    name: parameter.default
    for name, parameter in inspect.signature(fit).parameters.items()
    if name not in ("X", "client")
}
"""The parameters of a fit and their defaults, without the data and where it is fitted."""


def problem_of(X: Any, parameters: Mapping[str, Any]) -> Problem:
    """Return the problem that the parameters of a fit pose of data without labels."""
    return Problem.build(X, **{name: parameters[name] for name in OF_THE_PROBLEM})


def unlabelled(parameters: Mapping[str, Any], modes: tuple[Mode, ...] | None) -> dict[str, Any]:
    """What the user gave as models of any package or by names of modes, as ours and by numbers."""
    init, known = parameters["init"], parameters["fixed_components"]
    start = as_model(init)
    return {
        "init": init if start is None else start,
        "fixed": by_number("fixed", parameters["fixed"], modes),
        "same": groups_by_number(parameters["same"], modes),
        "fixed_components": known.distribute().factors if isinstance(known, CPModel) else known,
    }


def _run(plan: Plan, parameters: Mapping[str, Any]) -> Fit:
    """Run a plan, and gather what it found."""
    folder, resume = parameters["checkpoint"], parameters["resume"]
    seed, n_jobs = parameters["random_state"], parameters["n_jobs"]
    callback = parameters["callback"]
    if folder is not None and resume and seed is None:
        seed = entropy_in(folder)
    rng = generator(seed)
    fingerprint = None
    if folder is not None:
        asked = {name: each for name, each in parameters.items() if name not in NOT_IDENTIFYING}
        if isinstance(plan.init, CPModel):
            asked["init"] = plan.init.distribute().factors
        identity = Identity.of(plan.problem, asked, rng)
        fingerprint = identity.data
        every = parameters["checkpoint_every"]
        plan = plan.kept_in(opened(folder, identity, every, resume, plan.problem.freedom))
    settings = plan.settings
    with (
        interrupts_recognised(),
        settings.journal,
        threads.limited_to(settings.n_threads),
        Progress(parameters["progress"] if n_jobs == 1 else False, settings.stopping) as show,
    ):

        def observe(epoch: Epoch) -> Any:
            show(epoch)
            return callback is not None and callback(Report.of(epoch, plan.problem.loss))

        best = plan.run(rng, n_jobs, observe)
    compilation.tell()
    return replace(_outcome(plan, best, parameters["n_init"]), fingerprint=fingerprint)


def _outcome(plan: Plan, best: Scored, n_init: int) -> Fit:
    """What the best result of a plan amounts to, with what is said of it."""
    problem, found = plan.problem, best.result
    factors, remark = without_unobserved_rows(problem, found.factors)
    ended = found.status
    if problem.scale_remark and ended.converged:
        stopped = f"Stopped{ended.reason.removeprefix('Converged')}"
        ended = ended._replace(converged=False, reason=stopped)
    said = (ended.reason, problem.scale_remark, remark, problem.loss_remark)
    status = ended._replace(reason=" ".join(filter(None, said)))
    model = CPModel(factors, np.ones(problem.rank), problem.loss)
    if isinstance(plan.init, str) and not problem.has_entry_bounds:
        model = model[places_by_share(model)]
    agreed = None
    if n_init > 1 and found.comparison is not None:
        agreed = consensus_of(problem, model, best.objective, status.converged, found.comparison)
    if agreed is not None and agreed.warning:
        status = status._replace(reason=f"{status.reason} {agreed.warning}")
    name = plan.solver.name
    return Fit(
        problem, model, best.loss, found.history, status, name, agreed, loss_error=best.error
    )


def decompose(X: Any, rank: int, loss: Any = "auto", **parameters: Any) -> CPModel:
    """Decompose a tensor into ``rank`` components and return the model.

    Parameters
    ----------
    X : array of order >= 2
        The data.
    rank : int
        Number of components.
    loss : str or Loss
        How the data was made; see `smartcpd.losses`. "auto" chooses by the values, as
        `choose_loss` does.
    **parameters
        Everything else that `smartcpd.SmartCPD` and its `fit` take.

    Returns
    -------
    CPModel

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((10, 9, 8), rank=1, random_state=0)
    >>> smartcpd.decompose(X, 1, "poisson", random_state=0)
    CPModel(shape=10x9x8, rank=1, loss=poisson)
    """
    found = fit(X, rank, loss, **parameters)
    warn_of(found.status)
    return found.model
