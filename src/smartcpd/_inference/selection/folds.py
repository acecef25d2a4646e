"""Folds of a tensor: the cells that are held out, and the data that is left to train on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.storage import Dense, InMemory, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows, weights_at
from smartcpd._inference.selection.zeros import ZeroDraw
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

HOLDOUTS = ("cells", "fibers")
MOST_FOLDS = 100
MOST_SCORED = 1 << 21
"""Number of held-out cells of a dense tensor that are scored; more would tell hardly more."""
FEWEST_SPARSE_CELLS = 1 << 16
"""Least number of zeros, or of cells of fibers, that a fold of a sparse tensor holds out, if there
are so many; twice the stored cells that it holds out, where those are more.
"""
ZEROS_A_STORED_CELL = 2
STORED_A_FOLD = 2
"""Least number of stored cells of a fold: without nonzeros in training data, every model that is
small enough is as good.
"""
ALL_FIBERS = 1 << 22
"""Every fiber is held out in some fold up to this many of them."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A tensor without some of its cells, and those cells."""

    training: InMemory
    places: list[np.ndarray]
    """The cells that are held out, as one array of indices a mode."""
    x: np.ndarray
    weights: np.ndarray
    """How much each cell counts, times how many cells it stands for."""

    @property
    def n_cells(self) -> int:
        return self.x.size


def make_folds(
    storage: Storage, cv: int, holdout: str, mode: Any, rng: np.random.Generator
) -> list[Fold]:
    """Make folds of the observed cells of a tensor.

    Dense cells, and cells of a sparse tensor whose others are unobserved, are dealt out so that
    each is held out once. In a tensor with many zeros, a fold holds out its share of the stored
    cells and a sample of the zeros; weights on both sides make up for their different chances.
    """
    check_holdout(storage, cv, holdout, mode)
    found = [_on_known_rows(fold) for fold in _folds(storage, cv, holdout, mode, rng)]
    if any(fold.n_cells == 0 or fold.weights.sum() <= 0 for fold in found):
        raise InvalidDataError(
            f"X has too few observed cells ({storage.n_cells - storage.n_missing:,} of shape "
            f"{storage.shape}) for cv={cv} folds by {holdout}. Use a smaller cv."
        )
    return found


def one_fold(storage: Storage, cv: int, rng: np.random.Generator) -> Fold | None:
    """The first of the folds of the cells, without the memory that all would take; None if there
    are too few observed cells.
    """
    try:
        fold = _on_known_rows(next(iter(_folds(storage, cv, "cells", 0, rng))))
    except InvalidDataError:
        return None
    return fold if fold.n_cells > 1 and fold.weights.sum() > 0 else None


def check_holdout(storage: Storage, cv: Any, holdout: Any, mode: Any) -> None:
    """Raise an error if no folds can be made."""
    whole = isinstance(cv, int | np.integer) and not isinstance(cv, bool)
    if not whole or not 2 <= cv <= MOST_FOLDS:
        raise InvalidParameterError(
            f"cv must be a whole number from 2 to {MOST_FOLDS}, the number of folds; got {cv!r}."
        )
    if holdout not in HOLDOUTS:
        raise InvalidParameterError(f"holdout must be 'cells' or 'fibers'; got {holdout!r}.")
    order = len(storage.shape)
    if not isinstance(mode, int | np.integer) or not 0 <= mode < order:
        raise InvalidParameterError(
            f"fiber_mode must be one of 0 to {order - 1}, or the name of a mode of X; got {mode!r}."
        )
    if holdout == "fibers" and order < 3:
        raise IncompatibleError(
            "The fibers of a matrix are its rows or columns, of which nothing would be left to "
            "train on. Use holdout='cells'."
        )


def _dealt(count: int, cv: int, rng: np.random.Generator) -> np.ndarray:
    """Deal out some things to folds of equal size, one byte each."""
    labels = np.resize(np.arange(cv, dtype=np.uint8), count)
    rng.shuffle(labels)
    return labels


@singledispatch
def _folds(
    storage: Storage, cv: int, holdout: str, mode: int, rng: np.random.Generator
) -> Iterable[Fold]:
    """Make the folds of a storage, each when it is asked for; they may have cells in rows that are
    unknown to training data.
    """
    raise TypeError(f"{type(storage).__name__} is no storage that folds can be made of.")


@_folds.register
def _(storage: Dense, cv: int, holdout: str, mode: int, rng: np.random.Generator) -> Iterator[Fold]:
    shape = list(storage.shape)
    if holdout == "fibers":
        shape[mode] = 1
    labels = _dealt(math.prod(shape), cv, rng).reshape(shape)
    for k in range(cv):
        held = np.broadcast_to(labels == k, storage.shape)
        own = np.ones((), bool) if storage.weights is None else storage.weights
        training = Dense(storage.array, np.where(held, own.dtype.type(0), own))
        cells = np.flatnonzero(held & (own != 0))
        if cells.size > MOST_SCORED:
            cells = np.sort(rng.choice(cells, MOST_SCORED, replace=False))
        places = list(np.unravel_index(cells, storage.shape))
        x = storage.array[tuple(places)].astype(np.float64)
        yield Fold(training, places, x, weights_at(storage, places))


@_folds.register
def _(
    storage: SparseTensor, cv: int, holdout: str, mode: int, rng: np.random.Generator
) -> Iterable[Fold]:
    if storage.nnz < STORED_A_FOLD * cv:
        raise InvalidDataError(
            f"{storage!r} stores {storage.nnz} cells, too few to hold some of them out in each of "
            f"cv={cv} folds; {STORED_A_FOLD * cv} are needed."
        )
    if storage.absent == "unobserved":
        return _observed(storage, cv, holdout, mode, rng)
    if holdout == "cells":
        return (_with_zeros(storage, *part) for part in _stored_parts(storage, cv, rng))
    return (_sparse_fibers(storage, *part) for part in _fiber_parts(storage, cv, mode, rng))


def _observed(
    storage: SparseTensor, cv: int, holdout: str, mode: int, rng: np.random.Generator
) -> Iterator[Fold]:
    """Make folds of a sparse tensor that stores all that was observed."""
    if holdout == "cells":
        labels = _dealt(storage.nnz, cv, rng)
    else:
        around = np.stack([c for n, c in enumerate(storage.indices) if n != mode], axis=1)
        fibers, which = np.unique(around, axis=0, return_inverse=True)
        labels = _dealt(len(fibers), cv, rng)[which.reshape(-1)]
    own = np.ones(storage.nnz) if storage.weights is None else storage.weights
    for k in range(cv):
        held = labels == k
        kept = tuple(column[~held] for column in storage.indices)
        weights = None if storage.weights is None else own[~held]
        training = SparseTensor(
            kept, storage.values[~held], storage.shape, "unobserved", weights, storage.missing
        )
        places = [column[held].astype(np.intp) for column in storage.indices]
        yield Fold(training, places, storage.values[held].astype(np.float64), own[held])


def _stored_parts(storage: SparseTensor, cv: int, rng: np.random.Generator) -> list[Any]:
    labels = _dealt(storage.nnz, cv, rng)
    zeros = storage.n_cells - storage.nnz
    wanted = max(FEWEST_SPARSE_CELLS, ZEROS_A_STORED_CELL * storage.nnz // cv)
    draw = ZeroDraw.of(storage, min(wanted, math.ceil(zeros / cv)), 1 / cv)
    return [(labels == k, draw, stream) for k, stream in enumerate(rng.spawn(cv))]


def _with_zeros(
    storage: SparseTensor, held: np.ndarray, draw: ZeroDraw, rng: np.random.Generator
) -> Fold:
    """Hold out some stored cells and some zeros.

    A stored cell is held out with the chance 1/cv, a zero with a smaller one. So that training data
    does not look emptier than it is, the stored cells that are left count for those that are not;
    and in the score every cell counts for one over its chance. Both sums are then, in expectation,
    what they would be had all cells had the same chance.
    """
    zeros, chance = draw.cells(storage, rng)
    own = np.ones(storage.nnz) if storage.weights is None else storage.weights
    kept = tuple(column[~held] for column in storage.indices)
    left = own[~held] * (1.0 - draw.chance(kept)) / (1.0 - draw.most)
    taken = [column[held].astype(np.intp) for column in storage.indices]
    places = [np.concatenate(pair) for pair in zip(taken, zeros, strict=True)]
    unseen = [np.concatenate(pair) for pair in zip(storage.missing, places, strict=True)]
    training = SparseTensor(kept, storage.values[~held], storage.shape, "zero", left, tuple(unseen))
    x = np.concatenate([storage.values[held].astype(np.float64), np.zeros(chance.size)])
    return Fold(training, places, x, np.concatenate([own[held] / draw.most, 1.0 / chance]))


def _fiber_parts(
    storage: SparseTensor, cv: int, mode: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, int]]:
    """Return for each fold the numbers of its fibers, which are drawn whatever they hold."""
    size = storage.shape[mode]
    n_fibers = storage.n_cells // size
    cells = max(FEWEST_SPARSE_CELLS, ZEROS_A_STORED_CELL * storage.nnz // cv)
    wanted = min(math.ceil(n_fibers / cv), math.ceil(cells / size))
    if n_fibers <= ALL_FIBERS:
        labels = _dealt(n_fibers, cv, rng)
        return [(rng.permutation(np.flatnonzero(labels == k))[:wanted], mode) for k in range(cv)]
    return [(np.unique(rng.integers(n_fibers, size=wanted)), mode) for _ in range(cv)]


def _sparse_fibers(storage: SparseTensor, fibers: np.ndarray, mode: int) -> Fold:
    size = storage.shape[mode]
    others = [n for n in range(storage.ndim) if n != mode]
    index = np.unravel_index(np.repeat(fibers, size), [storage.shape[n] for n in others])
    places: list[Any] = [None] * storage.ndim
    places[mode] = np.tile(np.arange(size), fibers.size)
    for n, column in zip(others, index, strict=True):
        places[n] = column
    own = weights_at(storage, places)
    training = storage.with_missing(tuple(places))
    places = [column[own != 0] for column in places]
    x = np.empty(places[0].size)
    storage.read_cells(stacked_rows(storage.shape, places), x)
    return Fold(training, places, x, own[own != 0])


def _on_known_rows(fold: Fold) -> Fold:
    """Leave out cells in rows of which nothing is left to train on, since no model can know
    them.
    """
    known = np.ones(fold.n_cells, bool)
    for column, rows in zip(fold.places, fold.training.unobserved_rows(), strict=True):
        if rows.size:
            known &= ~np.isin(column, rows)
    if known.all():
        return fold
    places = [column[known] for column in fold.places]
    return Fold(fold.training, places, fold.x[known], fold.weights[known])
