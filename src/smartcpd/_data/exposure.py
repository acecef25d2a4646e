"""Exposure: how much opportunity every cell had, such as people, hours or days."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.labelled import taken_off
from smartcpd._data.labels import Mode
from smartcpd._data.storage import SparseTensor
from smartcpd.errors import InvalidDataError, InvalidParameterError

EQUAL = 1e-12
"""The relative error up to which an array counts as a product of vectors."""


@dataclass(frozen=True, eq=False)
class Exposure:
    """The exposure of a tensor: a product of one vector for each mode, or a number for each cell.

    Attributes
    ----------
    vectors : tuple of arrays or None
        One for each mode, None for a mode that does not matter; empty where every cell has a number
        of its own.
    cells : array, SparseTensor or None
        The exposure of every cell, where it is no product. Models do not keep it.
    per : str
        What the exposure counts, such as "population"; empty if nobody said.

    Examples
    --------
    >>> import numpy as np
    >>> found = Exposure.of(np.array([[2.0], [4.0]]), (2, 3))
    >>> found.vectors
    (array([2., 4.]), None)
    """

    vectors: tuple[np.ndarray | None, ...] = ()
    cells: Any = None
    per: str = ""

    @classmethod
    def of(
        cls, given: Any, shape: tuple[int, ...], modes: tuple[Mode, ...] | None = None
    ) -> Exposure:
        """Return what a user gave, checked."""
        if isinstance(given, Exposure):
            return given
        if isinstance(given, Mapping):
            return cls(_vectors(given, shape, modes))
        tensor, _ = taken_off(given)
        if isinstance(tensor, SparseTensor):
            _check_shape(tensor.shape, shape)
            _check_numbers(tensor.values, "exposure")
            return cls(cells=tensor)
        array = np.asarray(tensor, dtype=np.float64)
        _check_shape(array.shape, shape)
        _check_numbers(array, "exposure")
        padded = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
        factors = _factors_of(padded, shape)
        if factors is not None:
            return cls(factors)
        return cls(cells=np.broadcast_to(padded, shape))

    @property
    def is_product(self) -> bool:
        """Whether it is a product of vectors, one for each mode."""
        return bool(self.vectors)

    @property
    def words(self) -> str:
        """What model values are."""
        return f"rates per {self.per}" if self.per else "rates per unit of exposure"

    def full(self, shape: tuple[int, ...]) -> np.ndarray:
        """The exposure of every cell."""
        if isinstance(self.cells, SparseTensor):
            return self.cells.to_dense(max_bytes=np.inf).astype(np.float64)
        if not self.is_product:
            return np.asarray(self.cells)
        rows = [np.ones(n) if v is None else v for v, n in zip(self.vectors, shape, strict=True)]
        return functools.reduce(np.multiply.outer, rows)

    def at(self, cells: Any) -> np.ndarray:
        """The exposure of some cells, given by an array of places for each mode."""
        if isinstance(self.cells, SparseTensor):
            return _stored_at(self.cells, cells)
        if not self.is_product:
            found: np.ndarray = self.cells[tuple(cells)]
            return found
        out = np.ones(np.shape(cells[0]))
        for v, places in zip(self.vectors, cells, strict=True):
            out = out if v is None else out * v[places]
        return out

    def of_rows(self, rows: Mapping[int, np.ndarray], single: Any = ()) -> Exposure:
        """The exposure of chosen rows; modes that are ``single``, of one row, go."""
        if not self.is_product:
            return self
        kept = [v if v is None or n not in rows else v[rows[n]] for n, v in enumerate(self.vectors)]
        left = [n for n in range(len(kept)) if n not in single]
        for n in single:
            row = kept[n]
            if row is not None:
                first = kept[left[0]]
                kept[left[0]] = row if first is None else first * row
        return Exposure(tuple(kept[n] for n in left), per=self.per)

    def scaled(self, factors: Any, power: float) -> list[np.ndarray]:
        """Factors with their rows multiplied by a power of the exposure, 0 where that is 0."""
        return [scaled_rows(A, v, power) for A, v in zip(factors, self.vectors, strict=True)]


def scaled_rows(A: np.ndarray, v: np.ndarray | None, power: float) -> np.ndarray:
    """Return an array whose rows are multiplied by a power of the numbers v, 0 where those are."""
    if v is None:
        return A
    scale = np.zeros_like(v)
    np.power(v, power, out=scale, where=v > 0)
    return A * scale.reshape(-1, *[1] * (A.ndim - 1))


def _vectors(
    given: Mapping[Any, Any], shape: tuple[int, ...], modes: tuple[Mode, ...] | None
) -> tuple[np.ndarray | None, ...]:
    numbers = {mode.name: n for n, mode in enumerate(modes or ())}
    found: list[np.ndarray | None] = [None] * len(shape)
    for name, value in given.items():
        mode = numbers.get(name, name)
        if not isinstance(mode, int | np.integer) or not 0 <= mode < len(shape):
            raise InvalidParameterError(
                f"exposure names mode {name!r}, but the modes of X are 0 to {len(shape) - 1}"
                + (f" ({', '.join(numbers)})." if numbers else ".")
            )
        vector = np.array(value, dtype=np.float64)
        if vector.shape != (shape[mode],):
            raise InvalidParameterError(
                f"exposure[{name!r}] has shape {vector.shape}; mode {name!r} has {shape[mode]} "
                "rows, and needs a number for each."
            )
        _check_numbers(vector, f"exposure[{name!r}]")
        found[int(mode)] = vector
    if not given:
        raise InvalidParameterError("exposure is an empty dict; name the modes that it is about.")
    return tuple(found)


def _check_shape(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(own, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise InvalidParameterError(
            f"exposure has shape {own}, and X {shape}. Give a number for each cell, an array that "
            "broadcasts to X, or a dict from modes to vectors."
        )


def _check_numbers(values: np.ndarray, name: str) -> None:
    good = np.isfinite(values) & (values >= 0)
    if not good.all():
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        raise InvalidDataError(
            f"{name} is {values[where]:g} at {where}; it must be finite and not negative, 0 for "
            "what was not observed."
        )
    if not values.any():
        raise InvalidDataError(f"{name} is 0 everywhere, so that nothing was observed.")


def _factors_of(array: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray | None, ...] | None:
    """The vectors whose product an array is, None in place of ones; None if it is no product."""
    places = [n for n, size in enumerate(array.shape) if size > 1]
    if len(places) <= 1:
        at = places[0] if places else 0
        own = np.broadcast_to(array.reshape(-1), shape[at]).copy()
        return tuple(own if n == at else None for n in range(array.ndim))
    total = array.sum()
    sums = [array.sum(axis=tuple(k for k in places if k != n)).reshape(-1) for n in places]
    product = functools.reduce(np.multiply.outer, sums) / total ** (len(places) - 1)
    if not np.allclose(product, np.squeeze(array), rtol=EQUAL, atol=EQUAL * array.max()):
        return None
    found: list[np.ndarray | None] = [None] * array.ndim
    for n, v in zip(places, sums, strict=True):
        # Only the product counts; all but the first vector get a mean of 1.
        found[n] = v / (total / v.size) if n != places[0] else v
    first = found[places[0]]
    assert first is not None
    rest = np.prod([array.shape[n] for n in places[1:]])
    found[places[0]] = first / rest
    return tuple(found)


def _stored_at(tensor: SparseTensor, cells: Any) -> np.ndarray:
    """What a sparse tensor holds in some cells, 0 where it stores nothing."""
    own = np.ravel_multi_index([c.astype(np.int64) for c in tensor.indices], tensor.shape)
    asked = np.ravel_multi_index([np.asarray(c, np.int64) for c in cells], tensor.shape)
    order = np.argsort(own)
    place = np.minimum(np.searchsorted(own, asked, sorter=order), max(own.size - 1, 0))
    if not own.size:
        return np.zeros(asked.shape)
    chosen = order[place]
    return np.where(own[chosen] == asked, tensor.values[chosen].astype(np.float64), 0.0)
