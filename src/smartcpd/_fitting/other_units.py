"""A fit in other units: data divided by a power of two, the model and its losses multiplied back.

Both are exact, so that a fit of the same data in other units ends with the same digits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._fitting.model import CPModel
from smartcpd._problem.history import History, Record
from smartcpd._problem.problem import Problem

MOST = sys.float_info.max


class OtherUnits:
    """The way from the units of the data to those of the fit, and back."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        exponent = round(math.log2(problem.unit))
        cones = problem.scalable
        self.exponent = exponent
        self.shares = dict.fromkeys(range(len(problem.shape)), 0)
        for number, mode in enumerate(cones):
            self.shares[mode] = exponent // len(cones) + (number < exponent % len(cones))
        degree = problem.loss.homogeneity
        assert degree is not None
        self.factor = problem.unit**degree
        self.loss = problem.loss.in_units(problem.unit)
        self.shift = problem.loss.unit_shift(problem.unit, problem.storage.mean() / problem.unit)

    @property
    def storage(self) -> Storage:
        """The data in the units of the fit."""
        return _divided(self.problem.storage, self.exponent)

    def inside(self, model: CPModel) -> CPModel:
        """Return a model of the data in the units of the fit."""
        factors = self._moved(model.distribute().factors, -1)
        return CPModel(factors, loss_function=self.loss)

    def fit(self, parameters: dict[str, Any], fit: Callable[..., Any]) -> Any:
        """Fit in other units; ``parameters`` are those of `fit`, without the data."""
        callback = parameters["callback"]
        changed = {
            "rank": self.problem.rank,
            "loss": self.loss,
            "mask": None,
            "weights": None,
            "init": self._start(parameters["init"]),
            "callback": None if callback is None else lambda report: callback(self._report(report)),
        }
        found = fit(self.storage, **(parameters | changed))
        remark = f"X was divided by {self.problem.unit:.3g} for the fit, and so are losses here."
        remark = f"{remark} {self.problem.loss_remark}".strip()
        agreed = found.consensus
        if agreed is not None:
            losses = tuple(self.outside(loss) for loss in agreed.losses)
            agreed = replace(agreed, model=self._model(agreed.model), losses=losses)
        return replace(
            found,
            problem=self.problem,
            model=self._model(found.model),
            loss=self.outside(found.loss),
            loss_error=found.loss_error * self.factor,
            history=History(self._record(record) for record in found.history),
            status=found.status._replace(reason=f"{found.status.reason} {remark}"),
            consensus=agreed,
        )

    def _start(self, init: Any) -> Any:
        if isinstance(init, CPModel):
            return replace(init, factors=self._moved(init.factors, -1))
        return init if isinstance(init, str) else self._moved(init, -1)

    def _moved(self, factors: Any, sign: int) -> list[np.ndarray]:
        return [np.ldexp(np.asarray(A), sign * self.shares[n]) for n, A in enumerate(factors)]

    def _model(self, model: CPModel) -> CPModel:
        factors = self._moved(model.factors, 1)
        return replace(model, factors=factors, loss_function=self.problem.loss)

    def outside(self, loss: float) -> float:
        """Return a loss in the units of the data.

        One beyond the range of numbers, of steps that lead nowhere, is the largest of them.
        """
        return min(max(loss * self.factor + self.shift, -MOST), MOST)

    def _record(self, record: Record) -> Record:
        error = min(record.error * self.factor, MOST)
        return record._replace(loss=self.outside(record.loss), error=error)

    def _report(self, report: Any) -> Any:
        def model() -> CPModel:
            return self._model(report.model())

        return replace(report, record=self._record(report.record), model=model)


@singledispatch
def _divided(storage: Storage, exponent: int) -> Storage:
    """The same data, divided by a power of two."""
    raise TypeError(f"{type(storage).__name__} is not in memory.")


@_divided.register
def _(storage: Dense, exponent: int) -> Dense:
    return Dense(_lowered(storage.array, exponent), storage.weights)


@_divided.register
def _(storage: SparseTensor, exponent: int) -> SparseTensor:
    values = _lowered(storage.values, exponent)
    return SparseTensor(
        storage.indices, values, storage.shape, storage.absent, storage.weights, storage.missing
    )


def _lowered(values: np.ndarray, exponent: int) -> np.ndarray:
    wide = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    return np.ldexp(wide, -exponent)
