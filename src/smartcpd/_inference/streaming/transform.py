"""The factor of one mode for new slices, the other factors fixed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd import constraints
from smartcpd._common import threads
from smartcpd._common.parameters import by_mode
from smartcpd._data.labelled import LabelledTensor, taken_off
from smartcpd._data.labels import Mode
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.unobserved import row_names
from smartcpd._kernels.bounded_rows import compiled_bounded_rows
from smartcpd._methods.row_newton import SMALL_STEP, Rows, Rule, solve_rows
from smartcpd._objectives.slices.sums import Slices, observed_per_row, slices_of
from smartcpd.constraints import Constraint
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError
from smartcpd.losses import Domain, Loss
from smartcpd.losses import get as get_loss

INSIDE = 0.1
"""The share of a first row that keeps it away from the bounds."""
RIDGE = 1e-9
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class NewSlices:
    """Data whose slices of one mode are new to a model, checked against it."""

    storage: Dense | SparseTensor
    modes: tuple[Mode, ...] | None
    loss: Loss
    constraints: tuple[Constraint, ...]
    factors: tuple[np.ndarray, ...]
    """The factors of the model, its weights absorbed in another mode than the one that is new."""
    mode: int

    @classmethod
    def checked(
        cls,
        model: CPModel,
        X: Any,
        mode: int | str,
        constraint: Any,
        absent: str,
        mask: Any,
        weights: Any,
    ) -> NewSlices:
        """Check the data against the model before any work is done."""
        loss = model.loss_function
        if loss is None:
            raise InvalidParameterError(
                "This model has no loss, so nothing says how new data is to be fitted. "
                "Build it with loss_function=..."
            )
        place = checked_mode(model, mode)
        X, modes = taken_off(X)
        storage = in_memory(as_storage(X, absent, mask, weights), "transform")
        _check_shape(model, storage.shape, place)
        if modes is not None and model.modes is not None:
            _check_labels(model.modes, modes, place)
        storage.check(loss)
        choices = by_mode("constraint", constraint, model.order)
        chosen = tuple(resolved_constraint(loss, choice) for choice in choices)
        _check_sign(loss, chosen[place], place)
        elsewhere = 1 if place == 0 else 0
        factors = tuple(A.astype(np.float64) for A in model.absorb(elsewhere).factors)
        return cls(storage, modes, loss, chosen, factors, place)

    @property
    def n_new(self) -> int:
        return self.storage.shape[self.mode]

    def slices(self, mode: int, factors: Sequence[np.ndarray], n_threads: int) -> Slices:
        return slices_of(self.storage, self.loss, factors, mode, n_threads)

    def solved(self, n_threads: int, small_step: float = SMALL_STEP) -> Rows:
        """Return the rows of the new slices; call it within `threads.limited_to`."""
        slices = self.slices(self.mode, self.factors, n_threads)
        start = first_rows(self, n_threads)
        # Penalties stand next to the mean loss of the tensor that was fitted, whatever the number
        # of slices that are looked at now.
        scale = self.storage.n_observed * len(self.factors[self.mode]) / self.n_new
        rule = Rule(self.constraints[self.mode], scale)
        found = solve_rows(slices, start, rule, small_step)
        return found._replace(A=self._without_unobserved(found.A))

    def unobserved(self) -> np.ndarray:
        """New slices without observed cells."""
        return self.storage.unobserved_rows()[self.mode]

    def _without_unobserved(self, A: np.ndarray) -> np.ndarray:
        rule = Rule(self.constraints[self.mode])
        if rule.bounds is not None:
            A[self.unobserved()] = np.clip(0.0, *rule.bounds)
        return A


def transform(
    model: CPModel,
    X: Any,
    mode: int | str = 0,
    *,
    constraint: Any = "auto",
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
) -> np.ndarray | LabelledTensor:
    """Return the factor of one mode for new slices; see `smartcpd.CPModel.transform`."""
    _check_exposure(model, mode)
    model = model.with_exposure()
    new = NewSlices.checked(model, X, mode, constraint, absent, mask, weights)
    A = _new_rows(model, new)
    if new.modes is None:
        return A
    numbers = Mode("component", np.arange(1, model.rank + 1))
    return LabelledTensor(A, (new.modes[new.mode], numbers))


def _check_exposure(model: CPModel, mode: int | str) -> None:
    """Refuse rows of a mode that had an exposure: nobody said that of the new ones."""
    exposure, place = model.exposure, checked_mode(model, mode)
    if exposure is not None and exposure.is_product and exposure.vectors[place] is not None:
        raise IncompatibleError(
            f"The rows of mode {mode!r} are rates, and the exposure of new ones is not known. Use "
            "model.with_exposure().transform(X), and divide its rows by their exposure."
        )


def _new_rows(model: CPModel, new: NewSlices) -> np.ndarray:
    n_threads = threads.resolve(None)
    with threads.limited_to(n_threads):
        found = new.solved(n_threads)
    report(new, found)
    return found.A.astype(model.weights.dtype)


def with_new_rows(
    model: CPModel, X: Any, mode: int | str, constraint: Any, absent: str, mask: Any, weights: Any
) -> CPModel:
    """Return a model of new slices alone, with their own rows in place of the model's."""
    model = model.with_exposure()
    A = _new_rows(model, NewSlices.checked(model, X, mode, constraint, absent, mask, weights))
    place = checked_mode(model, mode)
    factors = [A if n == place else F for n, F in enumerate(model.factors)]
    modes = None
    if model.modes is not None:
        given = taken_off(X)[1]
        rows = Mode.numbered(model.modes[place].name, len(A)) if given is None else given[place]
        modes = tuple(rows if n == place else m for n, m in enumerate(model.modes))
    return replace(model, factors=factors, modes=modes)


def report(new: NewSlices, found: Rows) -> None:
    """Warn of rows that nothing is known of, and of those that were not solved."""
    empty = new.unobserved()
    if empty.size:
        warnings.warn(
            f"No cell was observed in {row_names(new.mode, empty)} of the new data: the factor is "
            "0 there.",
            stacklevel=3,
        )
    open_rows = np.flatnonzero(~found.solved)
    if open_rows.size:
        warnings.warn(
            f"The search did not end for {row_names(new.mode, open_rows)} of the new data; what is "
            "returned is the best that was found.",
            stacklevel=3,
        )


def first_rows(new: NewSlices, n_threads: int) -> np.ndarray:
    """Return where the search begins: at 0; or if the model must be positive, near the least
    squares, inside of the bounds and with the right mean.
    """
    others = [A for n, A in enumerate(new.factors) if n != new.mode]
    shape = (new.n_new, others[0].shape[1])
    if new.loss.domain is Domain.REAL:
        return np.zeros(shape)
    squares = slices_of(new.storage, get_loss("gaussian"), new.factors, new.mode, n_threads)
    sums = squares.at(np.zeros(shape))
    ridge = RIDGE * np.einsum("jrr->jr", sums.bend).max(axis=1, keepdims=True) + TINY
    np.einsum("jrr->jr", sums.bend)[:] += ridge
    A, gains = np.zeros(shape), np.zeros(shape[0])
    compiled_bounded_rows()(
        sums.slope, sums.bend, np.zeros(shape), np.full(shape, np.inf), A, gains
    )
    observed = np.maximum(observed_per_row(new.storage, new.mode), TINY)
    means = np.maximum(squares.row_totals() / observed, 0.0)
    targets = np.array([new.loss.link(float(mean)) for mean in means])
    unit = np.prod([np.abs(F).mean(axis=0) for F in others], axis=0)
    # A component that the other factors leave out has nothing to say about these rows.
    equal = targets[:, None] / max(float(unit.sum()), TINY) * (unit > 0)
    linked = A * (targets / np.maximum(means, TINY))[:, None] * (unit > 0)
    return INSIDE * equal + (1.0 - INSIDE) * linked


def checked_mode(model: CPModel, mode: int | str) -> int:
    """Return the number of a mode that is given by its number or its name."""
    names = [m.name for m in model.named_modes]
    if isinstance(mode, str) and mode in names:
        return names.index(mode)
    whole = isinstance(mode, int | np.integer) and not isinstance(mode, bool)
    if whole and 0 <= int(mode) < model.order:
        return int(mode)
    raise InvalidParameterError(
        f"mode must be one of 0 to {model.order - 1}, or a name ({', '.join(map(repr, names))}); "
        f"got {mode!r}."
    )


def resolved_constraint(loss: Loss, choice: Any) -> Constraint:
    """Return the constraint that a choice means for this loss, as for a fit."""
    nonnegative = loss.domain is Domain.NONNEGATIVE
    default = "nonnegative" if nonnegative else "free"
    found = constraints.get(default if choice == "auto" else choice)
    return found.within(nonnegative=nonnegative)


def _check_sign(loss: Loss, constraint: Constraint, mode: int) -> None:
    if loss.domain is Domain.NONNEGATIVE and constraint.signed:
        raise IncompatibleError(
            f"Loss '{loss}' needs a nonnegative model, but constraint '{constraint}' of mode "
            f"{mode} lets entries be negative. Use constraint='nonnegative'."
        )


def _check_shape(model: CPModel, shape: tuple[int, ...], mode: int) -> None:
    if len(shape) != model.order:
        raise InvalidDataError(
            f"X has {len(shape)} modes, the model {model.order}. New slices keep all modes: give "
            f"one slice as an array whose mode {mode} has length 1."
        )
    for n, (new, old) in enumerate(zip(shape, model.shape, strict=True)):
        if n != mode and new != old:
            # scikit-learn's common checks expect its wording for tables.
            table = (
                f" X has {new} features, but SmartCPD is expecting {old} features as input."
                if model.order == 2 and n == 1
                else ""
            )
            raise InvalidDataError(
                f"Mode {n} of X has length {new}, that of the model {old}; only mode {mode} may "
                f"differ.{table}"
            )


def _check_labels(known: Sequence[Mode], given: Sequence[Mode], mode: int) -> None:
    """Refuse data whose rows of the other modes are not those of the model."""
    for n, (old, new) in enumerate(zip(known, given, strict=True)):
        if n == mode:
            continue
        if old.name != new.name:
            raise InvalidDataError(
                f"Mode {n} of X is {new.name!r}, that of the model {old.name!r}; give the modes in "
                "the same order."
            )
        different = np.flatnonzero(np.array(old.text()) != np.array(new.text()))
        if different.size:
            row = int(different[0])
            raise InvalidDataError(
                f"Row {row} of mode {new.name!r} is {new.text()[row]!r} in X and "
                f"{old.text()[row]!r} in the model; bring the rows in the model's order."
            )
