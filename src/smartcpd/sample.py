"""A fixed sample of cells, to judge scales by: how noisy the data is, how large derivatives are."""

from __future__ import annotations

import numpy as np

from smartcpd.problem import Problem
from smartcpd.sampling import Uniform
from smartcpd.stack import offsets

N_CELLS = 1 << 14


class CellSample:
    """Some cells of the data, the same for every model they are compared with."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._mode = int(np.argmax(problem.shape))
        n_fibers = max(1, N_CELLS // problem.shape[self._mode])
        draws = Uniform().draw(problem.shape, 1, n_fibers, np.random.default_rng(0))
        self._fibers = draws.fibers[0]
        self._x = np.empty((problem.shape[self._mode], n_fibers))
        storage = problem.storage
        storage.gather_block("float64")(storage.handle(), self._fibers, self._mode, 0, self._x)

    def curvature(self, A: np.ndarray) -> float:
        """Mean of m² |l''(x, m)|: how much the loss minds a relative change of the model."""
        m = self._model(A)
        return float(np.mean(np.abs(self._slope(m)) * m * m)) or 1.0

    def resolution(self, A: np.ndarray) -> float:
        """How far noise alone moves the minimal mean loss: dispersion * parameters / cells.

        The dispersion compares the variance of l' with its expected slope; it is 1 for Poisson and
        binary data that fits its model, sigma² for Gaussian data, 0 for data without noise.
        """
        m = self._model(A)
        pull = m * self._derivative(m)
        curvature = float(np.mean(self._slope(m) * m * m))
        size = float(np.mean(np.abs(pull)))
        # A loss without curvature, such as an absolute error, has the size of its slope instead.
        curved = curvature > 1e-6 * size
        dispersion = float(np.mean(pull**2)) / curvature if curved else size
        n_modes = len(self._problem.shape)
        freedom = self._problem.rank * (sum(self._problem.shape) - n_modes + 1)
        return dispersion * freedom / self._problem.storage.n_cells

    def _model(self, A: np.ndarray) -> np.ndarray:
        starts = offsets(self._problem.shape)
        H = np.ones((len(self._fibers), A.shape[1]))
        for k in range(len(starts) - 1):
            if k != self._mode:
                H *= A[starts[k] + self._fibers[:, k]]
        return A[starts[self._mode] : starts[self._mode + 1]] @ H.T

    def _slope(self, m: np.ndarray) -> np.ndarray:
        # One-sided, since m - h could leave the domain of the loss.
        h = 1e-5 * np.abs(m) + 1e-9
        return (self._derivative(m + h) - self._derivative(m)) / h

    def _derivative(self, m: np.ndarray) -> np.ndarray:
        loss = self._problem.loss
        m = np.ascontiguousarray(m)
        out = np.empty_like(m)
        loss.derivative_block("float64")(
            self._x.reshape(-1), m.reshape(-1), loss.params, out.reshape(-1)
        )
        return out
