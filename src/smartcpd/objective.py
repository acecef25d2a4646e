"""The objective: the mean loss over cells, exact or on a fixed sample, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd import threads
from smartcpd.errors import InvalidParameterError
from smartcpd.kernels.passes import compiled_fiber_pass
from smartcpd.losses import Loss
from smartcpd.stack import offsets, stack
from smartcpd.storage import Storage, as_storage

if TYPE_CHECKING:
    from smartcpd.model import CPModel

N_GROUPS = 8
CELLS_AT_ONCE = 1 << 14
FIBERS_A_CALL = 1 << 16
CELLS_WORTH_THREADS = 1 << 17


@dataclass(frozen=True)
class Objective:
    """F(A), the mean of l(x, m) over all cells of a storage.

    Its methods are called within `threads.limited_to`.
    """

    storage: Storage
    loss: Loss
    n_threads: int = 1

    def value(self, A: np.ndarray) -> float:
        """Exact value at the stacked factors A, in one pass over the data."""
        mode = self.storage.pass_mode()
        total = sum(self._pass(A, mode, f, False)[0] for f in self._all_fibers(mode))
        return total / self.storage.n_cells

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        """Exact value and gradient, stacked like A; one pass over the data for each mode."""
        gradient = np.zeros_like(A, dtype=np.float64)
        starts = offsets(self.storage.shape)
        value = 0.0
        for mode in range(len(self.storage.shape)):
            value = 0.0
            for fibers in self._all_fibers(mode):
                part, G = self._pass(A, mode, fibers, True)
                value += part
                gradient[starts[mode] : starts[mode + 1]] += G
        n = self.storage.n_cells
        return value / n, gradient / n

    def sampled_value(self, A: np.ndarray, mode: int, fibers: np.ndarray) -> float:
        """Mean loss over the cells of the given fibers (F x N) of one mode."""
        total, _ = self._pass(A, mode, fibers, False)
        return total / (len(fibers) * self.storage.shape[mode])

    def sampled_gradient(self, A: np.ndarray, mode: int, fibers: np.ndarray) -> np.ndarray:
        """Unbiased estimate of one mode's gradient from fibers drawn uniformly."""
        _, G = self._pass(A, mode, fibers, True)
        return G / (len(fibers) * self.storage.shape[mode])

    def _all_fibers(self, mode: int) -> Iterator[np.ndarray]:
        shape = list(self.storage.shape)
        shape[mode] = 1
        n_fibers = int(np.prod(shape, dtype=object))
        for start in range(0, n_fibers, FIBERS_A_CALL):
            ids = np.arange(start, min(start + FIBERS_A_CALL, n_fibers))
            yield np.stack(np.unravel_index(ids, shape), axis=1)

    def _pass(
        self, A: np.ndarray, mode: int, fibers: np.ndarray, want_gradient: bool
    ) -> tuple[float, np.ndarray]:
        """Sums over the cells of some fibers; whole groups first, then what is left over."""
        n_rows = self.storage.shape[mode]
        group_size = len(fibers) // N_GROUPS
        parts = [fibers[: N_GROUPS * group_size].reshape(N_GROUPS, group_size, fibers.shape[1])]
        parts.append(fibers[N_GROUPS * group_size :][None])
        total, G = 0.0, np.zeros((n_rows, A.shape[1]))
        for part in parts:
            if part.shape[1] == 0:
                continue
            values = np.zeros(len(part))
            sums = np.zeros((len(part) if want_gradient else 0, n_rows, A.shape[1]))
            self._run(A, mode, part, want_gradient, values, sums)
            total += float(values.sum())
            for group_sum in sums:
                G += group_sum
        return total, G

    def _run(
        self,
        A: np.ndarray,
        mode: int,
        fibers: np.ndarray,
        want_gradient: bool,
        values: np.ndarray,
        sums: np.ndarray,
    ) -> None:
        n_rows = self.storage.shape[mode]
        n_cells = fibers.shape[0] * fibers.shape[1] * n_rows
        parallel = self.n_threads > 1 and n_cells >= CELLS_WORTH_THREADS
        compiled_fiber_pass(parallel)(
            self.storage.gather_block("float64"),
            self.storage.handle(),
            offsets(self.storage.shape),
            mode,
            np.ascontiguousarray(fibers),
            max(1, min(256, CELLS_AT_ONCE // n_rows)),
            self.loss.value_block("float64"),
            self.loss.derivative_block("float64"),
            self.loss.params,
            want_gradient,
            np.ascontiguousarray(A, dtype=np.float64),
            values,
            sums,
        )


def mean_loss(X: Any, model: CPModel) -> float:
    """The exact mean loss of a model on data X."""
    if model.loss_function is None:
        raise InvalidParameterError(
            "This model has no loss. Load it with CPModel.load(path, loss=...)."
        )
    storage = as_storage(X)
    if storage.shape != model.shape:
        raise InvalidParameterError(
            f"X has shape {storage.shape}, the model {model.shape}. They must be the same."
        )
    storage.check(model.loss_function)
    n_threads = threads.resolve(None)
    objective = Objective(storage, model.loss_function, n_threads)
    with threads.limited_to(n_threads):
        return objective.value(stack(model.distribute().factors))
