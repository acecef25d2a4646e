"""A quadratic fitted to the loss, its sum in closed form, and its error on a sample of cells."""

from __future__ import annotations

import copy
import math

import numpy as np

from smartcpd._common.model_cells import values_at
from smartcpd._common.stacked import unstack
from smartcpd._data.event_sums import Sum, event_sum
from smartcpd._data.storage.events import Events
from smartcpd._objectives.backgrounds.quadratic import Quadratic, QuadraticLoss, quadratic_sum
from smartcpd.losses import Loss

N_CELLS = 1 << 17
N_PILOT = 1 << 12


class Sampled:
    """A background for any loss and any number of cells, with a standard error.

    The quadratic is a control variate: whatever it is, the sum is unbiased; the closer it is to the
    loss, the less the sample matters. It is fitted to other cells, at each sum anew. Half of the
    cells are drawn anywhere, half where the model is large at the factors A, and each counts for
    one over its probability. They stay the same, so that two sums differ by the factors alone.

    Line searches need more: a value and a gradient that belong to one function. ``held_at`` fixes
    the quadratic for them.
    """

    quadratic: Quadratic | None = None
    """The quadratic to use in place of the one that is fitted at each sum."""

    def __init__(
        self,
        loss: Loss,
        shape: tuple[int, ...],
        n_threads: int,
        A: np.ndarray,
        n_cells: int = N_CELLS,
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.shape = shape
        self.n_threads = n_threads
        rng = np.random.default_rng(seed)
        self.pilot = weighted_cells(A, shape, N_PILOT, rng)
        self.cells = weighted_cells(A, shape, n_cells, rng)

    def sum(self, A: np.ndarray, want_gradient: bool) -> Sum:
        quadratic = self.quadratic or fitted_quadratic(self.loss, A, self.pilot)
        total, gradient = quadratic_sum(A, self.shape, quadratic, want_gradient)
        total -= quadratic.c0 * float(self.cells.values.sum())
        line = QuadraticLoss(quadratic.c1, quadratic.c2)
        for sign, loss in ((1.0, self.loss), (-1.0, line)):
            part = event_sum(
                self.cells,
                loss,
                "weighted",
                A,
                want_gradient,
                self.n_threads,
            )
            total += sign * part.total
            if want_gradient:
                gradient = gradient + sign * part.gradient
        return Sum(total, gradient, self._variance(A, quadratic))

    def held_at(self, A: np.ndarray) -> Sampled:
        """Return the same cells with the quadratic that suits the factors A, wherever sums are
        taken.
        """
        held = copy.copy(self)
        held.quadratic = fitted_quadratic(self.loss, A, self.pilot)
        return held

    def _variance(self, A: np.ndarray, quadratic: Quadratic) -> float:
        """Return the variance of the estimated total, from every few of the cells."""
        every = max(1, len(self.cells) // (4 * N_PILOT))
        m = model_values(A, self.cells, slice(None, None, every))
        residual = loss_at_zero(self.loss, m) - quadratic.at(m)
        parts = self.cells.values[::every] * len(self.cells) * residual
        return float(parts.var()) / len(self.cells)


def weighted_cells(
    A: np.ndarray, shape: tuple[int, ...], count: int, rng: np.random.Generator
) -> Events:
    """Cells whose values are weights: summed with them, anything estimates its sum over all cells.

    Every second one is drawn uniformly, the others in proportion to the sizes of the model's terms.
    """
    sizes = [np.abs(F) for F in unstack(A, shape)]
    terms = np.prod([F.sum(axis=0) for F in sizes], axis=0)
    total = float(terms.sum())
    columns = [rng.integers(n, size=count, dtype=np.uint32) for n in shape]
    uniform = 1.0 / math.prod(shape)
    if not 0 < total < np.inf:
        weights = np.full(count, 1 / (uniform * count))
        return Events(tuple(columns), weights, shape)
    chosen = np.arange(1, count, 2)
    components = np.sort(rng.choice(terms.size, size=chosen.size, p=terms / total))
    for column, F in zip(columns, sizes, strict=True):
        for r in np.unique(components):
            here = chosen[components == r]
            up_to = np.cumsum(F[:, r])
            drawn = np.searchsorted(up_to, rng.random(here.size) * up_to[-1], side="right")
            column[here] = np.minimum(drawn, F.shape[0] - 1)
    cells = Events(tuple(columns), np.zeros(count), shape)
    model = values_at(sizes, np.ones(terms.size), cells.rows(slice(None)))
    probability = 0.5 * uniform + 0.5 * model / total
    return Events(cells.indices, 1 / (probability * count), shape)


def fitted_quadratic(loss: Loss, A: np.ndarray, pilot: Events) -> Quadratic:
    """The quadratic that leaves the least variance: least squares, weighted like the cells."""
    m = model_values(A, pilot)
    scale = float(np.abs(m).max(initial=0.0)) or 1.0
    u = m / scale
    columns = np.stack([np.ones_like(u), u, 0.5 * u * u], axis=1)
    weights = pilot.values / pilot.values.max()
    values = loss_at_zero(loss, m)
    c = np.linalg.lstsq(columns * weights[:, None], values * weights, rcond=None)[0]
    return Quadratic(float(c[0]), float(c[1] / scale), float(c[2] / scale**2))


def loss_at_zero(loss: Loss, m: np.ndarray) -> np.ndarray:
    out = np.empty_like(m)
    loss.values_block("float64")(np.zeros_like(m), m, loss.params, out)
    return out


def model_values(A: np.ndarray, cells: Events, where: slice = slice(None)) -> np.ndarray:
    """The model at the cells, or at some of them."""
    factors = unstack(A, cells.shape)
    return values_at(factors, np.ones(A.shape[1]), cells.rows(where))
