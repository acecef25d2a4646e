"""A whole fit: parameters in, the best model of several starts out."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._data.labelled import taken_off
from smartcpd._data.labels import Mode
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.consensus.starts import consensus_of
from smartcpd._fitting.converters import as_model
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.named_modes import by_number, groups_by_number
from smartcpd._fitting.open_loss import fit_open
from smartcpd._fitting.other_units import OtherUnits
from smartcpd._fitting.progress import Progress
from smartcpd._fitting.shares import places_by_share
from smartcpd._fitting.unobserved import without_unobserved_rows
from smartcpd._fitting.warning import warn_of
from smartcpd._kernels.notices import compilation
from smartcpd._methods.base import Epoch, Method, Settings
from smartcpd._objectives import Estimate
from smartcpd._problem.checkpoints import Identity, entropy_in, opened
from smartcpd._problem.history import History, Record, Status
from smartcpd._problem.problem import Problem, check_integer, check_number
from smartcpd._problem.stopping import Stopping
from smartcpd._strategies import registry, warm_starts
from smartcpd._strategies.auto import choice, from_a_start
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.restarts import Restarts
from smartcpd._strategies.starts import make_start, with_more_components
from smartcpd._strategies.tiled import tiled
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Loss

MAX_EPOCHS = 5000
TOL = 0.02
CHECKPOINT_EVERY = 30.0
PLAIN_RUNS = 4
"""Number of starts that are compared where some entries of the factors are known or some modes
share a factor: strategies that merge and replace components would not leave these alone.
"""
NOT_IDENTIFYING = {
    "X",
    "mask",
    "weights",
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


@dataclass(frozen=True)
class Fit:
    """All that a fit found; `decompose` and `SmartCPD` return parts of it."""

    problem: Problem = field(repr=False)
    """The data, checked, and the pieces that the model was fitted with."""
    model: CPModel
    loss: float
    history: History
    status: Status
    solver: str
    """The strategy or method that "auto" chose, or the user."""
    consensus: Consensus | None = None
    """What several starts agree on, where at least two came to their end."""
    traffic: Any = None
    """The bytes and seconds of the exchange with the workers of a cluster, if there was one."""
    loss_error: float = 0.0
    """The standard error of the loss, where that comes from a sample of the cells."""
    fingerprint: str | None = None
    """A digest of the data, if checkpoints needed one."""

    @property
    def mean_loss(self) -> Estimate:
        """The loss with its standard error."""
        return Estimate(self.loss, self.loss_error)

    def labelled(self, modes: tuple[Mode, ...] | None) -> Fit:
        """Return the same fit, with labels on the modes of its models."""
        if modes is None:
            return self
        agreed = self.consensus
        if agreed is not None:
            agreed = replace(agreed, model=replace(agreed.model, modes=modes))
        return replace(self, model=replace(self.model, modes=modes), consensus=agreed)


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
    client: Any = None,
) -> Fit:
    """Fit a CP model; see `smartcpd.SmartCPD` and its `fit` for the parameters."""
    parameters = {name: value for name, value in locals().items() if name in FIT_PARAMETERS}
    own = registry.own_defaults(registry.get(solver), parameters, FIT_PARAMETERS)
    if own:
        return fit(X, client=client, **(parameters | own))
    if client is not None:
        from smartcpd.distributed.fitting import fit_on

        tensor, modes = taken_off(X)
        return fit_on(client, tensor, parameters, fit).labelled(modes)
    known = None if loss == "auto" else losses.get(loss)
    if known is not None and known.is_open:
        tensor, modes = taken_off(X)
        return fit_open(tensor, known, parameters, fit).labelled(modes)
    start = as_model(init)
    if start is not None:
        init = start.distribute().factors
    if isinstance(fixed_components, CPModel):
        fixed_components = fixed_components.distribute().factors
    asked = {name: value for name, value in parameters.items() if name not in NOT_IDENTIFYING}
    asked |= {"init": init, "fixed_components": fixed_components}
    check_integer("n_init", n_init, at_least=1)
    if consensus and n_init == 1:
        raise IncompatibleError(
            "consensus=True compares starts with one another, and n_init=1 is a single one. Use "
            "n_init=5, say."
        )
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise InvalidParameterError(
            f"n_jobs must be a whole number other than 0; -1 for all cores; got {n_jobs!r}."
        )
    check_number("overcomplete", overcomplete, at_least=1)
    check_number("checkpoint_every", checkpoint_every, at_least=0)
    if resume and checkpoint is None:
        raise IncompatibleError("resume=True needs the folder of a checkpoint: checkpoint=path.")
    chosen = registry.get(solver)
    X, modes = taken_off(X)
    problem = Problem.build(
        X,
        rank,
        loss,
        mirror,
        constraint,
        step,
        sampler,
        absent,
        mask,
        weights,
        max_memory,
        by_number("fixed", fixed, modes),
        fixed_components,
        groups_by_number(same, modes),
    )
    if problem.unit != 1.0:
        parameters = {name: value for name, value in locals().items() if name in FIT_PARAMETERS}
        return OtherUnits(problem).fit(parameters, fit).labelled(modes)
    if chosen is not None:
        registry.check(chosen, problem)
    settings = make_settings(
        problem,
        n_fibers=n_fibers,
        inner_iterations=inner_iterations,
        fresh_fibers=fresh_fibers,
        averaging=averaging,
        max_epochs=max_epochs,
        max_time=max_time,
        tol=tol,
        kkt_tol=kkt_tol,
        change_tol=change_tol,
        dtype=dtype,
        # Restarts that run side by side each keep to one thread.
        n_threads=n_threads if n_jobs == 1 else 1,
        overcomplete=overcomplete,
        n_init=1 if consensus else int(n_init),
        effort=effort,
        stochastic=asks_for_sampling(asked),
    )
    repairs = None
    if chosen is None:
        chosen, _ = choice(problem, settings)
        registry.check(chosen, problem)
        # Repairs would replace what is known or shared; of tiled data, they would take longer than
        # the fit.
        if not problem.needs_plain_descents and chosen is not tiled:
            repairs, _ = from_a_start(chosen, "", problem)
    warm = init if isinstance(init, str) and init in warm_starts.EPOCHS else None
    if warm is not None:
        warm_starts.check(warm, problem)
    compares = isinstance(chosen, Strategy) and chosen.compares_starts
    n_runs = 1 if compares and warm is None and not consensus else n_init
    if problem.needs_plain_descents and n_init == 1 and _is_random(init):
        n_runs = max(1, math.ceil(effort * PLAIN_RUNS))
    if not _is_random(init):
        chosen, _ = from_a_start(chosen, "", problem)
    if checkpoint is not None and resume and random_state is None:
        random_state = entropy_in(checkpoint)
    rng = generator(random_state)
    fingerprint = None
    if checkpoint is not None:
        identity = Identity.of(problem, asked, rng)
        fingerprint = identity.data
        journal = opened(checkpoint, identity, checkpoint_every, resume, problem.freedom)
        settings = replace(settings, journal=journal)
    if start is not None and start.rank < problem.rank:
        init = with_more_components(problem, init, rng)
    with settings.journal, threads.limited_to(settings.n_threads):
        streams = rng.spawn(n_runs)
        starts = [
            None if isinstance(chosen, Strategy) else make_start(problem, init, overcomplete, rng)
            for rng in streams
        ]
        with Progress(progress if n_jobs == 1 else False, settings.stopping) as show:

            def observe(epoch: Epoch) -> Any:
                show(epoch)
                return callback is not None and callback(Report.of(epoch, problem.loss))

            restarts = Restarts(
                problem,
                settings,
                chosen,
                n_jobs,
                observe,
                warm,
                repairs,
                settles=repairs is not None and not settings.stochastic,
                whole=bool(consensus),
                own_start=_is_random(init) or warm is not None,
            )
            best = restarts.best(starts, streams)
    compilation.tell()
    found = best.result
    factors, remark = without_unobserved_rows(problem, found.factors)
    said = (found.status.reason, remark, problem.loss_remark)
    status = found.status._replace(reason=" ".join(filter(None, said)))
    model = CPModel(factors, np.ones(problem.rank), problem.loss)
    if isinstance(init, str) and not problem.has_entry_bounds:
        model = model[places_by_share(model)]
    agreed = None
    if n_init > 1 and found.comparison is not None:
        agreed = consensus_of(problem, model, best.objective, status.converged, found.comparison)
    if agreed is not None and agreed.warning:
        status = status._replace(reason=f"{status.reason} {agreed.warning}")
    return Fit(
        problem,
        model,
        best.loss,
        found.history,
        status,
        chosen.name,
        agreed,
        loss_error=best.error,
        fingerprint=fingerprint,
    ).labelled(modes)


@dataclass(frozen=True)
class Report:
    """The report that a callback receives after each epoch."""

    record: Record
    model: Callable[[], CPModel]
    """Builds the model of this row; while several runs compete, not always the best so far."""
    is_best: bool = True
    """Whether this model is what the fit would return if it ended here."""

    @classmethod
    def of(cls, epoch: Epoch, loss: Loss) -> Report:
        """Make a report for a user's callback from the state of a run."""
        return cls(
            epoch.record, lambda: CPModel(epoch.factors(), loss_function=loss), epoch.is_best
        )


FIT_PARAMETERS = {
    name: parameter.default
    for name, parameter in inspect.signature(fit).parameters.items()
    if name not in ("X", "client")
}
"""The parameters of a fit and their defaults, without the data and where it is fitted."""


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


def explain(X: Any, rank: int, loss: Any = "auto", **parameters: Any) -> str:
    """Say what a fit with these parameters would do, without doing it.

    Parameters
    ----------
    X, rank, loss, **parameters
        As for `decompose`.

    Returns
    -------
    str
        The problem as it was understood, the solver and the reason for it.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((30, 30, 30), rank=3, random_state=0)
    >>> print(smartcpd.explain(X, 3, "poisson"))  # doctest: +ELLIPSIS
    30x30x30, rank 3, loss poisson, constraint nonnegative, ...
    solver dense: X is dense and has at most 8388608 cells
    """
    inspect.signature(fit).bind(X, rank, loss, **parameters)  # raises an error for unknown names
    names = (
        "mirror",
        "constraint",
        "fixed",
        "fixed_components",
        "same",
        "step",
        "sampler",
        "absent",
        "mask",
        "weights",
        "max_memory",
    )
    solver = registry.get(parameters.get("solver", "auto"))
    parameters |= registry.own_defaults(solver, parameters | {"loss": loss}, FIT_PARAMETERS)
    loss = parameters.pop("loss", loss)
    known = None if loss == "auto" else losses.get(loss)
    if known is not None and known.is_open:
        first = explain(X, rank, known.limit, **parameters)
        return f"{first}\nthen loss {known}, its parameter and the factors in turn until both stay"
    X, modes = taken_off(X)
    parameters["fixed"] = by_number("fixed", parameters.get("fixed"), modes)
    parameters["same"] = groups_by_number(parameters.get("same"), modes)
    problem = Problem.build(X, rank, loss, **{n: v for n, v in parameters.items() if n in names})
    reason = "your choice"
    if solver is None:
        solver, reason = choice(problem, _settings(problem, parameters))
    if not _is_random(parameters.get("init", "random")):
        solver, reason = from_a_start(solver, reason, problem)
    registry.check(solver, problem)
    lines = [str(problem)]
    if problem.loss_reason:
        lines.append(f"loss {problem.loss_reason}")
    lines.append(f"solver {solver.name}: {reason}")
    needs = problem.storage.fit_needs(problem.rank, problem.loss)
    if needs is not None:
        lines.append(str(needs))
    return "\n".join(lines)


def _settings(problem: Problem, parameters: dict[str, Any]) -> Settings:
    """The settings of a fit, as far as the choice of a solver depends on them."""
    return make_settings(problem, stochastic=asks_for_sampling(parameters))


def _is_random(init: Any) -> bool:
    """Whether the user left it open where to start."""
    return isinstance(init, str) and init == "random"


def asks_for_sampling(parameters: dict[str, Any]) -> bool:
    """Whether the user chose how stochastic steps are made."""
    usual = {
        "mirror": "auto",
        "step": "auto",
        "sampler": "auto",
        "n_fibers": None,
        "inner_iterations": 1,
        "fresh_fibers": False,
        "averaging": True,
    }
    return any(parameters.get(name, value) != value for name, value in usual.items())


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
