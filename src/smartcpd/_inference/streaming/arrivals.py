"""The arrival of new slices at a fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._data.labels import Mode
from smartcpd._data.storage import Dense
from smartcpd._fitting.found import Fit
from smartcpd._fitting.model import CPModel
from smartcpd._inference.streaming.early import EarlySlices
from smartcpd._inference.streaming.growing import check_growth, first_past, grow
from smartcpd._inference.streaming.past import Past
from smartcpd._inference.streaming.transform import NewSlices, report
from smartcpd._problem.history import Record, Status
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

Refit = Callable[[Any], Fit]
REMEMBERED_CELLS = 1 << 22
"""Number of cells of the model that stand for the data it was fitted to, where nothing else is
known.
"""
MOST_CELLS = 1 << 25


@dataclass(frozen=True)
class Arrival:
    """A model that has grown, and how it did."""

    model: CPModel
    past: Past
    loss: float
    record: Record
    status: Status


def check_forgetting(forgetting: Any) -> float:
    real = isinstance(forgetting, int | float | np.number) and not isinstance(forgetting, bool)
    if not real or not 0.0 < float(forgetting) <= 1.0:
        raise InvalidParameterError(
            "forgetting must be above 0 and at most 1 (nothing is forgotten): how much older "
            f"slices count at each arrival; got {forgetting!r}."
        )
    return float(forgetting)


def past_of(
    model: CPModel,
    X: Any,
    mode: int | str,
    constraint: Any,
    absent: str,
    mask: Any,
    weights: Any,
    n_threads: int | None,
) -> Past:
    """Return what is remembered of the data that a model was just fitted to."""
    fitted = NewSlices.checked(model, X, mode, constraint, absent, mask, weights)
    n_threads = threads.resolve(n_threads)
    with threads.limited_to(n_threads):
        past = first_past(fitted, n_threads)
    return replace(past, early=EarlySlices.of(fitted.storage, past.mode, model.rank))


def arrive(
    model: CPModel,
    past: Past | None,
    X: Any,
    mode: int | str,
    forgetting: float,
    constraint: Any,
    absent: str,
    mask: Any,
    weights: Any,
    n_threads: int | None,
    last: Record | None = None,
    refit: Refit | None = None,
) -> Arrival:
    """Fit new slices; without a past, what the model itself expects stands for its data.

    ``refit`` is called with all slices while they are few.
    """
    if model.exposure is not None:
        raise IncompatibleError(
            f"partial_fit does not know the exposure of new slices, and {model!r} has one. Fit the "
            "data without exposure=, and divide the rows of the model by it."
        )
    new = NewSlices.checked(model, X, mode, constraint, absent, mask, weights)
    check_growth(new)
    if past is not None and past.mode != new.mode:
        raise IncompatibleError(
            f"Mode {past.mode} has grown so far, and what is remembered of its slices says nothing "
            f"about another one; got mode={mode!r}. Use mode={past.mode}."
        )
    modes = _grown_modes(model.modes, new)
    began = time.perf_counter()
    n_threads = threads.resolve(n_threads)
    with threads.limited_to(n_threads):
        known = past or first_past(_expected(model, new), n_threads)
        grown = grow(new, known, forgetting, n_threads)
    report(new, grown.rows)
    found, kept = CPModel(grown.factors, None, new.loss, modes), grown.past
    size = f"{new.n_new} new slice{'s' * (new.n_new > 1)} of mode {new.mode}"
    end = "settled" if grown.settled else "did not settle"
    status = Status(grown.settled, f"{size}: the factors {end} after {grown.sweeps} sweeps.")
    early = None if past is None or forgetting < 1.0 else past.early
    early = None if early is None or refit is None else early.plus(new.storage)
    if early is not None and refit is not None and early.are_due(model.rank):
        early = early.joined()
        again = _fitted_anew(found, early, refit)
        if again is not None:
            found, status = again
            kept = past_of(found, early.tensor, new.mode, constraint, absent, None, None, n_threads)
    if early is not None:
        kept = replace(kept, early=None if early.are_enough(model.rank) else early)
    loss = kept.loss / kept.n_observed
    record = Record(
        (last.time if last else 0.0) + time.perf_counter() - began,
        (last.epoch if last else 0) + grown.sweeps,
        (last.entries if last else 0) + new.storage.n_cells * grown.sweeps,
        loss,
        sum(c.penalty(A) for c, A in zip(new.constraints, found.factors, strict=True)),
        "partial_fit",
    )
    return Arrival(found, kept, loss, record, status)


def _fitted_anew(found: CPModel, early: EarlySlices, refit: Refit) -> tuple[CPModel, Status] | None:
    """Fit all slices so far; return that model, its components in the order of the present one, if
    it is better.
    """
    again = refit(early.tensor)
    if not again.loss < found.loss(early.tensor):
        return None
    model = replace(again.model, modes=found.modes).align(found)
    size = found.shape[early.mode]
    remark = f"All {size} slices of mode {early.mode} were fitted anew, being few."
    return model.absorb(early.mode), again.status._replace(reason=f"{remark} {again.status}")


def _expected(model: CPModel, new: NewSlices) -> NewSlices:
    """Return the data that a model expects, of some slices if there are many, as if it had come."""
    n_old, n_others = model.shape[new.mode], int(np.prod(model.shape, dtype=object))
    n_others //= n_old
    if n_others > MOST_CELLS:
        raise IncompatibleError(
            f"A slice of {model!r} has {n_others:,} cells, too many to look at what the model says "
            "of data that was not kept. Begin with partial_fit in place of fit: it remembers what "
            "later calls need."
        )
    count = int(np.clip(REMEMBERED_CELLS // n_others, 1, n_old))
    chosen = np.linspace(0, n_old - 1, count).round().astype(int)
    factors = [A[chosen] if n == new.mode else A for n, A in enumerate(new.factors)]
    data = np.asarray(CPModel(factors, None, new.loss).full(max_bytes=np.inf))
    # Every slice that is looked at stands for several.
    weights = np.full(data.shape, n_old / count) if count < n_old else None
    return replace(new, storage=Dense(data, weights), factors=tuple(factors))


def _grown_modes(known: tuple[Mode, ...] | None, new: NewSlices) -> tuple[Mode, ...] | None:
    """Return the names of all rows, old and new."""
    if known is None:
        return None
    mode = known[new.mode]
    if new.modes is None:
        raise InvalidDataError(
            f"The rows of mode {mode.name!r} have labels, and X says none for its new ones. Pass a "
            "LabelledTensor."
        )
    labels = new.modes[new.mode].labels
    if labels.dtype.kind != mode.labels.dtype.kind and not {
        labels.dtype.kind,
        mode.labels.dtype.kind,
    } <= set("iuf"):
        raise InvalidDataError(
            f"Labels of mode {mode.name!r} are of another kind in X ({labels.dtype}) than in the "
            f"model ({mode.labels.dtype})."
        )
    twice = np.flatnonzero(np.isin(labels, mode.labels))
    if twice.size:
        text = new.modes[new.mode].text()[int(twice[0])]
        raise InvalidDataError(
            f"Row {text!r} of mode {mode.name!r} is in the model already; partial_fit takes new "
            "slices only."
        )
    longer = Mode(mode.name, np.concatenate([mode.labels, labels]), mode.kind)
    return tuple(longer if n == new.mode else m for n, m in enumerate(known))
