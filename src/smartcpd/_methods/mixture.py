"""A nonnegative model as a mixture: every event draws a component, then its index in each mode.

The components have columns that sum to one, and weights: the events expected of each. Updates of
all modes at once are the EM algorithm of the mixture, which needs *expected counts*: how many of
the events of each row come from each component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smartcpd._common.factors import unit_columns
from smartcpd._common.stacked import parts
from smartcpd._methods.ratios import TINY, ratio
from smartcpd._problem.checkpoints.values import kept_value


@kept_value
@dataclass(frozen=True)
class Mixture:
    """Stacked columns of unit sum, and weights."""

    columns: np.ndarray
    weights: np.ndarray
    shape: tuple[int, ...]

    @classmethod
    def of(cls, A: np.ndarray, shape: tuple[int, ...]) -> Mixture:
        """Make a mixture of stacked factors; how components share their scale among modes is
        forgotten.
        """
        sums = np.array([F.sum(axis=0) for F in parts(A, shape)])
        return cls(unit_sums(A, shape), sums.prod(axis=0), shape)

    @classmethod
    def from_counts(cls, S: np.ndarray, shape: tuple[int, ...], smoothing: float) -> Mixture:
        """Return the mixture that expected counts S call for (the M-step).

        ``smoothing`` events, spread evenly over the rows of each mode in proportion to the weights,
        are added: entries that look empty early on can then still grow.
        """
        weights = S[: shape[0]].sum(axis=0)
        if smoothing:
            S = S + smoothing * weights / max(weights.sum(), TINY)
        return cls(unit_sums(S, shape), weights, shape)

    @property
    def rank(self) -> int:
        return self.weights.size

    @cached_property
    def units(self) -> list[np.ndarray]:
        """The columns of each mode at unit length, for cosines between components."""
        return [unit_columns(F)[0] for F in parts(self.columns, self.shape)]

    def stacked(self) -> np.ndarray:
        """Return stacked factors, with the weights in mode 0."""
        A = self.columns.copy()
        A[: self.shape[0]] *= self.weights
        return A

    def balanced(self) -> np.ndarray:
        """Return stacked factors, with the weights shared by all modes."""
        return self.columns * self.weights ** (1 / len(self.shape))

    def beside(self, other: Mixture) -> Mixture:
        """Return a mixture of the components of both, at half their weights."""
        columns = np.hstack([self.columns, other.columns])
        return Mixture(columns, 0.5 * np.concatenate([self.weights, other.weights]), self.shape)

    def carried_by(self, modes: Sequence[int]) -> np.ndarray:
        """Return stacked factors, with the weights shared by some modes; columns elsewhere sum to
        one.

        Without any such mode the weights must be one.
        """
        A = self.columns.copy()
        for n, F in enumerate(parts(A, self.shape)):
            if n in modes:
                F *= self.weights ** (1 / len(modes))
            else:
                # A component that is gone has no columns left, and may have any.
                F[:, F.sum(axis=0) == 0] = 1.0
                F /= F.sum(axis=0)
        return A

    def held(self, before: Mixture) -> Mixture:
        """Return these columns with the weights of a mixture before; its columns where none are
        left.
        """
        columns = np.where(self.weights > TINY, self.columns, before.columns)
        return Mixture(columns, before.weights, self.shape)

    def beyond(self, origin: Mixture, power: float) -> Mixture:
        """Return the mixture past this one on the line from ``origin``, straight between
        logarithms.

        With power 1 this is the mixture itself. The total weight stays that of the mixture.
        """
        columns = origin.columns * ratio(self.columns, origin.columns) ** power
        weights = origin.weights * ratio(self.weights, origin.weights) ** power
        weights *= self.weights.sum() / max(weights.sum(), TINY)
        return Mixture(unit_sums(columns, self.shape), weights, self.shape)


def unit_sums(A: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Scale columns to sum to one in every mode."""
    out = np.empty_like(A)
    for F, unit in zip(parts(A, shape), parts(out, shape), strict=True):
        np.divide(F, np.maximum(F.sum(axis=0), TINY), out=unit)
    return out
