"""A fit under a loss whose parameter it finds: factors and parameter in turn, until both stay.

The first factors are those of the loss that this one becomes at its limit, poisson for
negative-binomial: they need no parameter, and searches for them are quick. Then the parameter is
the one that makes the data most likely given their means, and the factors go on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._fitting.model import CPModel
from smartcpd._objectives import objective_of
from smartcpd._objectives.parameter import Parameter, likeliest, rescaled
from smartcpd._problem.history import History, Record, Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies import registry
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss

MOST_ROUNDS = 8
SETTLED, WITHIN_ERRORS = 0.05, 2.0
"""The factors need no other fit after a smaller change of the parameter, relative to it or in
standard errors, if that gains less than ``tol`` nats for each number that the model is free to
choose."""
OF_THE_DATA = ("absent", "mask", "weights", "max_memory")
OF_THE_PROBLEM = ("mirror", "constraint", "step", "sampler")


def fit_open(X: Any, loss: Loss, parameters: dict[str, Any], fit: Callable[..., Any]) -> Any:
    """Fit data, without labels, under a loss that is open."""
    if parameters["consensus"]:
        raise IncompatibleError(
            f"consensus=True compares starts under one loss, and '{loss}' becomes another in "
            "every round. Fit without it, and then with the loss that was found."
        )
    given = {name: parameters[name] for name in OF_THE_DATA}
    storage = in_memory(as_storage(X, *given.values()), f"Loss '{loss}'")
    rank, init = parameters["rank"], parameters["init"]
    named = {name: parameters[name] for name in OF_THE_PROBLEM}
    problem = Problem.build(storage, rank, loss.with_parameter(1.0), **named)
    solver = registry.get(parameters["solver"])
    if solver is not None:
        registry.check(solver, problem)
    usual = {name: value for name, value in parameters.items() if name not in given}
    rounds = _Rounds(storage, loss, usual, fit)
    if isinstance(init, CPModel) and init.loss_function is not None:
        return rounds.run(init.distribute().factors, init.loss_function)
    assert loss.limit is not None
    limit = losses.get(loss.limit)
    if not isinstance(init, str):
        return rounds.run(init, limit)
    first = rounds.fit(limit)
    return rounds.run(first.model.distribute().factors, limit)


@dataclass
class _Rounds:
    """The fits, which share the user's limits."""

    storage: Any
    loss: Loss
    parameters: dict[str, Any]
    fit_once: Callable[..., Any]

    def __post_init__(self) -> None:
        self.began = time.perf_counter()
        self.fits: list[Any] = []
        self.stopped = False
        self.n_threads = threads.resolve(self.parameters["n_threads"])

    def run(self, factors: Any, under: Loss) -> Any:
        """Find the parameter and the factors in turn, from factors under a loss."""
        found, value = None, self._known(under)
        for number in range(MOST_ROUNDS):
            parameter = self._likeliest(factors, under, value)
            if found is not None and self._has_settled(parameter, value):
                return self._at(parameter, number, settled=True)
            if self.fits and self.is_over:
                return self._at(parameter, number, settled=False)
            value, start = parameter.value, rescaled(factors, under, parameter.loss)
            found = self.fit(parameter.loss, init=start, n_init=1)
            factors, under = found.model.distribute().factors, parameter.loss
        return self._at(parameter, MOST_ROUNDS, settled=False)

    def _known(self, under: Loss) -> float | None:
        """The parameter of the loss that the first factors are under, if they are of this one."""
        return float(under.fields[0]) if type(under) is type(self.loss) else None

    def fit(self, loss: Loss, **more: Any) -> Any:
        """A fit with what earlier ones left of the user's limits."""
        left = dict(self.parameters)
        left["max_epochs"] = max(1, left["max_epochs"] - self.epochs)
        if left["max_time"] is not None:
            left["max_time"] = max(1e-3, left["max_time"] - time.perf_counter() + self.began)
        if left["checkpoint"] is not None:
            left["checkpoint"] = Path(left["checkpoint"]) / f"round-{len(self.fits)}"
        left |= {"loss": loss, "callback": self._callback} | more
        self.fits.append(self.fit_once(self.storage, **left))
        return self.fits[-1]

    @property
    def epochs(self) -> int:
        """Epochs of all fits so far; one that was interrupted early has a history without rows."""
        return sum(each.history[-1].epoch for each in self.fits if each.history)

    @property
    def is_over(self) -> bool:
        """Whether the user, or a limit of theirs, has ended the fit."""
        status = self.fits[-1].status
        late = self.parameters["max_time"]
        return (
            self.stopped
            or status.interrupted
            or self.epochs >= self.parameters["max_epochs"]
            or (late is not None and time.perf_counter() - self.began >= late)
        )

    def _callback(self, report: Any) -> bool:
        callback = self.parameters["callback"]
        self.stopped |= callback is not None and bool(callback(report))
        return self.stopped

    def _likeliest(self, factors: Any, under: Loss, near: float | None) -> Parameter:
        with threads.limited_to(self.n_threads):
            return likeliest(self.loss, self.storage, factors, under, self.n_threads, near)

    def _has_settled(self, parameter: Parameter, before: float | None) -> bool:
        assert before is not None
        small = parameter.gain <= self.parameters["tol"] * self.fits[-1].problem.freedom
        change = abs(parameter.value / before - 1.0)
        near = change <= max(SETTLED, WITHIN_ERRORS * parameter.error)
        return parameter.is_infinite or (small and near)

    def _at(self, parameter: Parameter, n_rounds: int, settled: bool) -> Any:
        """The means of the last fit under the loss that was found, with the time of all fits."""
        found = self.fits[-1]
        problem = replace(found.problem, loss=parameter.loss)
        factors = rescaled(found.model.distribute().factors, found.problem.loss, parameter.loss)
        with threads.limited_to(self.n_threads):
            mean = objective_of(self.storage, parameter.loss, self.n_threads).estimate(
                stack(factors)
            )
        began = Record(0.0, 0, 0, mean.loss, 0.0, "loss")
        last = found.history[-1] if found.history else began
        rows = [*found.history, last._replace(epoch=last.epoch + 1, loss=mean.loss, phase="loss")]
        earlier = [each.history[-1] for each in self.fits[:-1]]
        return replace(
            found,
            problem=problem,
            model=CPModel(factors, loss_function=parameter.loss),
            loss=mean.loss,
            loss_error=mean.error,
            history=History(_after(row, earlier) for row in rows),
            status=_told(found.status, parameter, n_rounds, settled),
        )


def _after(row: Record, earlier: list[Record]) -> Record:
    """The row of a history that goes on where others ended."""
    added = {
        name: getattr(row, name) + sum(getattr(last, name) for last in earlier)
        for name in ("time", "epoch", "entries")
    }
    return row._replace(**added)


def _told(status: Status, parameter: Parameter, n_rounds: int, settled: bool) -> Status:
    """What is said of the factors and of the parameter together."""
    loss = parameter.loss
    if not (status.converged and settled):
        end = "" if settled else f" The parameter had not settled after {n_rounds} rounds."
        return status._replace(converged=False, reason=f"{status.reason}{end}")
    if parameter.is_infinite:
        found = f"nothing tells this data from that of '{loss.limit}', so use that loss."
    else:
        found = (
            f"loss '{loss}' was found by maximum likelihood, its parameter to "
            f"{100 * parameter.error:.2g} %, and the factors have settled under it (rounds: "
            f"{n_rounds}). Not confirmed: a single run led to it, from the best model under "
            f"'{loss.limit}', so a better solution may exist."
        )
    return status._replace(reason=f"Converged: {found}", found=0 if parameter.is_infinite else 1)
