"""The shares of components, and their factors in a form that people can read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from smartcpd._common.factors import unit_columns
from smartcpd._fitting.model import CPModel


class Readable(NamedTuple):
    """A model made ready to be looked at: components in order of their shares.

    Attributes
    ----------
    model : CPModel
        Largest component first, with weights that are not negative. Nonnegative factors have
        columns that sum to 1; others have columns whose largest entry in absolute value is 1.
    shares : ndarray
        The shares of the components, which sum to 1.
    signed : bool
        Whether some component has negative entries, however the signs are shared among its modes.
    order : ndarray
        The place of each component in the model that was given.
    """

    model: CPModel
    shares: np.ndarray
    signed: bool
    order: np.ndarray

    def on_its_own(self) -> Readable:
        """The same, of the readable model itself: its components are in order as they are."""
        return self._replace(order=np.arange(self.shares.size))

    @property
    def share_of(self) -> str:
        """The name of the quantity that is shared out."""
        return "norm" if self.signed else "total"


def readable(model: CPModel) -> Readable:
    """Return the components of a model with their shares.

    A component's share is its part of the sum of all model values; where some are negative, its
    part of the components' norms.
    """
    columns, weights, shares, signed = _shared_out(model)
    order = np.argsort(-shares, kind="stable")
    columns = [A[:, order] for A in columns]
    shown = replace(model, factors=columns, weights=weights[order])
    return Readable(shown, shares[order], signed, order)


def places_by_share(model: CPModel) -> np.ndarray:
    """Return the places of the components, largest share first."""
    return np.argsort(-_shared_out(model)[2], kind="stable")


def _shared_out(model: CPModel) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, bool]:
    """Return readable columns, their weights and shares, and whether some entries are negative."""
    columns = [A.astype(np.float64) for A in model.factors]
    weights = model.weights.astype(np.float64)
    signed = bool((weights < 0).any()) or _have_negatives(columns)
    if signed:
        columns, weights = _scaled(columns, weights, _peaked)
        for r in np.flatnonzero(weights < 0):
            # The sign goes where it changes least: to the column that is most nearly symmetric.
            n = int(np.argmax([-A[:, r].min() for A in columns]))
            columns[n][:, r] *= -1.0
            weights[r] *= -1.0
        signed = _have_negatives(columns)
    if not signed:
        columns, weights = _scaled(columns, weights, lambda A: unit_columns(A, 1))
    sizes = np.abs(weights)
    if signed:
        sizes = sizes * np.prod([np.linalg.norm(A, axis=0) for A in columns], axis=0)
    total = sizes.sum()
    shares = sizes / total if total > 0 else np.full(sizes.size, 1.0 / sizes.size)
    return columns, weights, shares, signed


def _have_negatives(columns: list[np.ndarray]) -> bool:
    return any(bool((A < 0).any()) for A in columns)


def _scaled(
    columns: list[np.ndarray],
    weights: np.ndarray,
    scale: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> tuple[list[np.ndarray], np.ndarray]:
    """Columns in another scale, which gives them and what they were divided by, and the weights
    that make up for it."""
    found = [scale(A) for A in columns]
    return [A for A, _ in found], weights * np.prod([by for _, by in found], axis=0)


def _peaked(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide columns by their largest entry, sign included."""
    peak = A[np.abs(A).argmax(axis=0), np.arange(A.shape[1])]
    safe = np.where(peak != 0, peak, 1.0)
    return A / safe, peak
