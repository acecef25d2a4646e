"""A fit of data with an exposure: expected values are exposure times model.

An exposure that is a product of one vector for each mode changes nothing but the rows of factors:
the model of the data is fitted as always, and its rows are divided afterwards. An exposure of every
cell makes rates of the data, with weights under which they are equivalent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._data.exposure import Exposure
from smartcpd._data.labels import Mode
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.rates import Rates, rates_of, without_unexposed
from smartcpd._fitting.converters import as_model
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.named_modes import by_number, groups_by_number
from smartcpd._problem.history import History, Record
from smartcpd._problem.loss_choice import choose_loss
from smartcpd._problem.problem import Problem
from smartcpd.constraints import Constraint, EntryBounds
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss

PER_CELL = ("absent", "mask", "weights", "max_memory")
ASKED = ("mirror", "constraint", "step", "sampler")


def fit_exposed(
    X: Any, modes: tuple[Mode, ...] | None, parameters: dict[str, Any], fit: Callable[..., Any]
) -> Any:
    """Fit data, whose labels are off, with an exposure."""
    storage = as_storage(X, *(parameters[name] for name in PER_CELL))
    exposure = Exposure.of(parameters["exposure"], storage.shape, modes)
    loss = parameters["loss"]
    loss = choose_loss(storage).loss if loss == "auto" else losses.get(loss)
    if not loss.scales_with_exposure:
        raise IncompatibleError(
            f"exposure= multiplies the model, and under loss '{loss}' the mean of the data is not "
            "in proportion to the model. Use 'poisson' for counts, 'bernoulli-odds' for yes/no."
        )
    given = dict.fromkeys((*PER_CELL[1:], "exposure"))
    given |= {
        "absent": "zero",
        "loss": loss,
        "fixed": by_number("fixed", parameters["fixed"], modes),
        "same": groups_by_number(parameters["same"], modes),
    }
    asked = parameters | given
    if exposure.is_product:
        rules = _rules(storage, loss, asked)
        if _in_rows(exposure, rules, asked["same"]):
            asked["max_memory"] = parameters["max_memory"]
            return _InRows(exposure, rules).fit(storage, asked, fit)
    made = rates_of(in_memory(storage, "exposure="), exposure, loss)
    return _OfCells(made, exposure).fit(asked, fit)


def _rules(storage: Any, loss: Loss, asked: dict[str, Any]) -> tuple[Constraint, ...]:
    """The constraints of the rates, what is known among them."""
    known = loss.with_parameter(1.0) if loss.is_open else loss
    components = asked["fixed_components"]
    if isinstance(components, CPModel):
        asked["fixed_components"] = components = components.distribute().factors
    names = {name: asked[name] for name in ASKED}
    named = {"fixed": asked["fixed"], "fixed_components": components, "same": asked["same"]}
    return Problem.build(storage, asked["rank"], known, **names, **named).constraints


def _in_rows(exposure: Exposure, rules: tuple[Constraint, ...], same: Any) -> bool:
    """Whether rows can take the exposure.

    Constraints are then on single entries, and modes that share a factor have the same exposure.
    """
    entrywise = all(
        v is None or isinstance(rule, EntryBounds) or rule.bounds is not None
        for v, rule in zip(exposure.vectors, rules, strict=True)
    )
    alike = all(
        _equal(exposure.vectors[group[0]], exposure.vectors[n]) for group in same for n in group
    )
    return entrywise and alike


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


class _InRows:
    """A fit of the data itself, whose model has the exposure in the rows of its factors."""

    def __init__(self, exposure: Exposure, rules: tuple[Constraint, ...]) -> None:
        self.exposure, self.rules = exposure, rules

    def fit(self, storage: Any, asked: dict[str, Any], fit: Callable[..., Any]) -> Any:
        changed = {
            "constraint": [
                self._scaled(rule, v)
                for rule, v in zip(self.rules, self.exposure.vectors, strict=True)
            ],
            "fixed": None,
            "fixed_components": None,
            "init": self._start(asked["init"]),
            "callback": told(asked["callback"], self._rates, lambda record: record),
        }
        found = fit(without_unexposed(storage, self.exposure), **(asked | changed))
        return with_model(found, self._rates, self.exposure)

    def _start(self, init: Any) -> Any:
        start = as_model(init)
        if start is not None:
            return CPModel(self.exposure.scaled(start.distribute().factors, 1.0))
        if isinstance(init, str):
            return init
        return self.exposure.scaled([np.asarray(A, np.float64) for A in init], 1.0)

    def _scaled(self, rule: Constraint, v: np.ndarray | None) -> Constraint:
        """The constraint of rows that are multiplied by their exposure."""
        if v is None or rule.cone:
            return rule
        ends = (rule.low, rule.high) if isinstance(rule, EntryBounds) else rule.bounds
        assert ends is not None
        pairs = (
            np.broadcast_to(end, (v.size, np.shape(end)[-1] if np.ndim(end) else 1)) for end in ends
        )
        with np.errstate(invalid="ignore"):
            return EntryBounds(*(np.where(v[:, None] > 0, end * v[:, None], 0.0) for end in pairs))

    def _rates(self, model: CPModel) -> CPModel:
        factors = self.exposure.scaled(model.factors, -1.0)
        # What is known is known to the last bit, whatever it was multiplied by.
        held = [
            rule.apply(A) if isinstance(rule, EntryBounds) else A
            for rule, A in zip(self.rules, factors, strict=True)
        ]
        return replace(model, factors=held, exposure=self.exposure)


class _OfCells:
    """A fit of rates, each with the weight that its exposure gives it."""

    def __init__(self, made: Rates, exposure: Exposure) -> None:
        self.made = made
        self.exposure = replace(exposure, vectors=(), cells=None)
        if exposure.is_product:
            self.exposure = exposure

    def fit(self, asked: dict[str, Any], fit: Callable[..., Any]) -> Any:
        made = self.made
        fixed = asked["fixed_components"] is not None
        if fixed and made.unit != 1.0:
            raise IncompatibleError(
                f"The exposure of a cell is about {made.unit:.3g}, so that rates would be fitted "
                "in other units than those of fixed_components. Divide the exposure, and multiply "
                f"a factor of the components, by {made.unit:.3g}."
            )
        changed = {
            "init": self._start(asked["init"]),
            "callback": told(asked["callback"], self._rates, self._record),
        }
        found = fit(made.storage, **(asked | changed))
        found = with_model(found, self._rates, self.exposure)
        history = History(self._record(record) for record in found.history)
        loss = found.loss * made.factor + made.shift
        return replace(found, loss=loss, loss_error=found.loss_error * made.factor, history=history)

    def _start(self, init: Any) -> Any:
        start = as_model(init)
        if start is not None:
            return replace(start, weights=start.weights * self.made.unit, exposure=None)
        if isinstance(init, str):
            return init
        scale = self.made.unit ** (1.0 / len(init))
        return [scale * np.asarray(A, np.float64) for A in init]

    def _rates(self, model: CPModel) -> CPModel:
        weights = model.weights / self.made.unit
        return replace(model, weights=weights, exposure=self.exposure)

    def _record(self, record: Record) -> Record:
        made = self.made
        return record._replace(
            loss=record.loss * made.factor + made.shift, error=record.error * made.factor
        )


def told(
    callback: Any, model: Callable[[CPModel], CPModel], record: Callable[[Record], Record]
) -> Any:
    """A callback that hears of a fit in the user's terms."""
    if callback is None:
        return None

    def heard(report: Any) -> Any:
        return callback(
            replace(report, record=record(report.record), model=lambda: model(report.model()))
        )

    return heard


def with_model(found: Any, rates: Callable[[CPModel], CPModel], exposure: Exposure) -> Any:
    """The same fit, whose models are of rates, which its status says."""
    agreed = found.consensus
    if agreed is not None:
        agreed = replace(agreed, model=rates(agreed.model))
    said = f"{found.status.reason} The model is of {exposure.words}."
    return replace(
        found,
        model=rates(found.model),
        inner=found.model,
        consensus=agreed,
        status=found.status._replace(reason=said),
    )
