"""A model and its data, checked against each other and put on one scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._common.factors import equal_modes
from smartcpd._common.parameters import by_mode
from smartcpd._data.exposure import Exposure
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._data.storage.observed import stacked_rows
from smartcpd._fitting.model import CPModel
from smartcpd._inference import dispersion as dispersions
from smartcpd._inference.streaming.transform import resolved_constraint
from smartcpd._objectives.slices.sums import RowSums, slices_of
from smartcpd.constraints import Constraint, EntryBounds
from smartcpd.constraints.simplex import Simplex
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Dispersion, Domain, Loss

NEAR = 1e-4
"""An entry this close to a bound, relative to the largest of its column, is held by it if the slope
says so too.
"""
SAMPLED_CELLS = 1 << 18


@dataclass(frozen=True)
class Question:
    """A normalised model, the same with its scale shared among the modes, and the data.

    Where the data had an exposure, the first is of rates, the second of the data.
    """

    model: CPModel
    balanced: CPModel
    storage: Dense | SparseTensor
    loss: Loss
    constraints: tuple[Constraint, ...]
    level: float
    exposure: Exposure | None = None
    """What rates are multiplied by, of which the balanced model has the products."""

    @classmethod
    def checked(
        cls,
        model: CPModel,
        X: Any,
        level: float,
        constraint: Any,
        absent: str,
        mask: Any,
        weights: Any,
    ) -> Question:
        loss = model.loss_function
        if loss is None:
            raise InvalidParameterError(
                "This model has no loss, so data says nothing about it. Build it with "
                "loss_function=..."
            )
        if not isinstance(level, int | float | np.number) or not 0.0 < float(level) < 1.0:
            raise InvalidParameterError(f"level must be between 0 and 1; got {level!r}.")
        chosen = tuple(
            resolved_constraint(loss, c) for c in by_mode("constraint", constraint, model.order)
        )
        storage = in_memory(as_storage(X, absent, mask, weights), "intervals")
        if storage.shape != model.shape:
            raise InvalidParameterError(
                f"X has shape {storage.shape}, the model {model.shape}. They must be the same."
            )
        storage.check(loss)
        wide = CPModel([A.astype(np.float64) for A in model.factors], model.weights, loss)
        unit = wide.normalize()
        named = CPModel(unit.factors, unit.weights, loss, model.modes, model.exposure)
        balanced = replace(unit.distribute(), exposure=model.exposure)
        exposed = balanced.with_exposure()
        return cls(named, exposed, storage, loss, chosen, float(level), model.exposure)

    @cached_property
    def factors(self) -> list[np.ndarray]:
        return [np.asarray(A, dtype=np.float64) for A in self.balanced.factors]

    @cached_property
    def per_row(self) -> list[np.ndarray]:
        """The exposure of every row, as a column; 1 where there was none."""
        vectors = (None,) * len(self.factors) if self.exposure is None else self.exposure.vectors
        return [
            np.ones((len(A), 1)) if v is None else np.where(v > 0, v, 1.0)[:, None]
            for A, v in zip(self.factors, vectors, strict=True)
        ]

    @cached_property
    def rates(self) -> list[np.ndarray]:
        """The factors without exposure, which intervals are about."""
        return [A / e for A, e in zip(self.factors, self.per_row, strict=True)]

    @cached_property
    def groups(self) -> list[list[int]]:
        """The modes, those together that share a factor."""
        return equal_modes(self.factors)

    @cached_property
    def sums(self) -> list[RowSums]:
        """What the data says about each row alone, in all places that it has."""
        n_threads = threads.resolve(None)
        with threads.limited_to(n_threads):
            found = [
                slices_of(self.storage, self.loss, self.factors, n, n_threads).at(A)
                for n, A in enumerate(self.factors)
            ]
        for group in self.groups:
            together = reduce(RowSums.plus, (found[n] for n in group))
            for n in group:
                found[n] = together
        return found

    def check_bounds(self, method: str) -> None:
        """Raise an error for constraints that information about entries cannot take into
        account.
        """
        for mode, constraint in enumerate(self.constraints):
            served = isinstance(constraint, EntryBounds | Simplex)
            if constraint.bounds is None and not served:
                raise IncompatibleError(
                    f"method='{method}' knows bounds on single entries (and simplex) only; got "
                    f"constraint '{constraint}' for mode {mode}. Use method='bootstrap'."
                )

    @property
    def nonnegative(self) -> list[bool]:
        return [not c.signed for c in self.constraints]

    @cached_property
    def known(self) -> list[np.ndarray]:
        """Entries that were not estimated, because their values were given."""
        return [
            c.of_shape(A.shape, n).known if isinstance(c, EntryBounds) else np.zeros(A.shape, bool)
            for n, (c, A) in enumerate(zip(self.constraints, self.factors, strict=True))
        ]

    @cached_property
    def at_bound(self) -> list[np.ndarray]:
        """Entries that are 0, or nearly so, and that the data would rather have smaller."""
        found = []
        for A, sums, bounded in zip(self.factors, self.sums, self.nonnegative, strict=True):
            low = NEAR * np.abs(A).max(axis=0)
            found.append((low >= A) & (sums.slope >= 0) & bounded | ((A <= 0) & bounded))
        return [held & ~known for held, known in zip(found, self.known, strict=True)]

    @cached_property
    def unseen(self) -> list[np.ndarray]:
        """Rows without observed cells, in any place that they have."""
        found = self.storage.unobserved_rows()
        for group in self.groups:
            common = reduce(np.intersect1d, [found[n] for n in group])
            for n in group:
                found[n] = common
        return found

    @property
    def knows_noise(self) -> bool:
        """Whether the loss says how data scatters and how losses bend there on average. The tails
        of "huber" are straight, and nobody knows where data of a user's own loss lies: what is not
        known is measured on the data."""
        return self.loss.has_typical_data and self.loss.dispersion is not Dispersion.UNKNOWN

    def check_bends(self, method: str) -> None:
        """Refuse losses without curvature, such as absolute errors, whose slopes jump instead."""
        if self.knows_noise:
            return
        _, bend, w = self._sample
        # As many cells as would bend if all that bend did so alike.
        bent = float(w @ np.abs(bend)) ** 2 / max(float((w * bend) @ (w * bend)), 1e-300)
        if bent < self._scatter.freedom or not w @ bend > 0:
            raise IncompatibleError(
                f"method='{method}' needs the second derivatives of loss '{self.loss}', and they "
                "vanish in nearly all cells of X: its slope is constant there and jumps elsewhere. "
                "Use a loss that is smooth, such as 'huber(delta)'."
            )

    def dispersion(self, given: float | None) -> float:
        """Return how much wider than its loss says the data scatters."""
        if given is not None:
            if not given > 0:
                raise InvalidParameterError(f"dispersion must be a positive number; got {given!r}.")
            return float(given)
        if self.knows_noise:
            return dispersions.estimate(self.balanced, self.storage) or 1.0
        # Of a likelihood, squares of slopes have the expectation of second derivatives. So has any
        # loss if both are in proportion, as they are assumed to be.
        slope, bend, w = self._sample
        noise = self._scatter.correction * float(w @ slope**2)
        return max(noise / max(float(w @ bend), 1e-300), 1e-300)

    @property
    def _scatter(self) -> dispersions.Scatter:
        return dispersions.Scatter(self.balanced, self.storage)

    @cached_property
    def _sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes, second derivatives and weights of observed cells, some if there are many.

        Where the model must not be negative, weights are those of relative changes, or cells in
        which nearly nothing is expected would outvote all others.
        """
        storage, rng = self.storage, np.random.default_rng(0)
        cells = storage.some_cells(SAMPLED_CELLS, rng)
        rows = stacked_rows(storage.shape, cells)
        x, w = np.empty(len(cells[0])), np.empty(len(cells[0]))
        storage.read_cells(rows, x)
        storage.read_weights(rows, w)
        seen = w > 0
        x, m, w = x[seen], self.balanced.values(cells)[seen], w[seen]
        if self.loss.domain is Domain.NONNEGATIVE:
            w = w * m**2
        return self.loss.slopes_at(x, m), self.loss.bends_at(x, m), w
