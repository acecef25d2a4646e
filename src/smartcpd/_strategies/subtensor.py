"""Some rows of every mode, and how a model of them is extended to all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import parts, stack
from smartcpd._data.storage import Dense, DenseStorage
from smartcpd._methods.descents import FLOOR
from smartcpd._methods.quasi_newton import QuasiNewton, Region
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives.dense import DenseObjective
from smartcpd._problem.problem import Problem
from smartcpd._strategies.compression import Scales, is_linear, least_squares_rows

ROWS_A_COMPONENT = 2
"""Number of rows of a mode that a part has at least, for each component."""
MOST_PART_CELLS = 1 << 24
EXTENSION_CELLS = 512
"""Number of cells a parameter of the row when a factor is extended to all rows."""
EXTENSION_STEPS = 6


@dataclass(frozen=True)
class Subtensor:
    """Some rows of every mode."""

    rows: list[np.ndarray]

    @classmethod
    def of(
        cls, storage: DenseStorage, rank: int, n_cells: int, rng: np.random.Generator
    ) -> Subtensor:
        """Random rows, as many of the long modes as ``n_cells`` allow; all of the short ones."""
        shape = storage.shape
        most = max(_edge(shape, n_cells), ROWS_A_COMPONENT * rank)
        most = min(most, _edge(shape, MOST_PART_CELLS))
        return cls(storage.drawn([min(size, most) for size in shape], rng))

    def fewer(self, n_cells: int, mode: int, size: int, rng: np.random.Generator) -> Subtensor:
        """All ``size`` rows of one mode, and so many of the others that ``n_cells`` result."""
        sizes = tuple(1 if k == mode else len(r) for k, r in enumerate(self.rows))
        most = _edge(sizes, max(1, n_cells // size))
        chosen = [np.sort(rng.permutation(r)[:most]) for r in self.rows]
        chosen[mode] = np.arange(size)
        return Subtensor(chosen)

    @property
    def name(self) -> str:
        return "x".join(str(len(r)) for r in self.rows)


def _edge(shape: tuple[int, ...], n_cells: int) -> int:
    """Return the largest number that the modes can be cut to for a tensor of ``n_cells``."""
    edge = 1
    for size in sorted(set(shape)):
        short = [s for s in shape if s < size]
        edge = int((n_cells / math.prod(short)) ** (1 / (len(shape) - len(short))) + 1e-9)
        if edge <= size:
            break
    return max(edge, 2)


class Extension:
    """The extension of a model of some rows of every mode to one of all of them."""

    def __init__(
        self,
        problem: Problem,
        part: Subtensor,
        tracker: Tracker,
        region: Region,
        rng: np.random.Generator,
    ) -> None:
        self.storage = problem.stored_as(DenseStorage)
        self.problem = problem
        self.part = part
        self.tracker = tracker
        self.region = region
        self.rng = rng

    def filled(self, factors: list[np.ndarray]) -> list[np.ndarray]:
        """Factors of the part as those of all rows: rows that it says nothing of are average."""
        filled = []
        for rows, size, F in zip(self.part.rows, self.problem.shape, factors, strict=True):
            A = np.repeat(F.mean(axis=0)[None], size, axis=0)
            A[rows] = F
            filled.append(A)
        return filled

    def to_all_rows(self, factors: list[np.ndarray]) -> np.ndarray:
        """The stacked factors of all rows, a mode at a time, the others being known on the part."""
        whole, part = [], self.part
        for mode, size in enumerate(self.problem.shape):
            if len(part.rows[mode]) == size:
                whole.append(factors[mode])
                continue
            n_cells = min(EXTENSION_CELLS * size * self.problem.rank, MOST_PART_CELLS)
            self.tracker.check_time()
            around = part.fewer(n_cells, mode, size, self.rng)
            pairs = zip(factors, part.rows, around.rows, strict=True)
            known = [F[np.searchsorted(r, kept).clip(0, len(r) - 1)] for F, r, kept in pairs]
            known[mode] = self.filled(factors)[mode]
            watch = self.tracker.check_time
            cells = self.storage.gathered(around.rows, self.problem.loss, watch)
            whole.append(self._rows(cells, known, mode))
        return stack(whole)

    def _rows(self, storage: Dense, known: list[np.ndarray], mode: int) -> np.ndarray:
        """Return one factor, given the others: by least squares, or where that does not apply by a
        few steps in which bounds hold the others where they are.
        """
        loss = self.problem.loss
        region = self.region
        low, high = (parts(b, self.problem.shape)[mode] for b in (region.low, region.high))
        if is_linear(loss) and loss.link(0.5) == 0.5 and not storage.weighted:
            scales = Scales.of(storage, loss)
            solved = least_squares_rows(storage.array, known, mode, scales)
            floor = FLOOR * np.abs(solved).mean(axis=0)
            return np.clip(np.maximum(solved, floor) if low.min() >= 0 else solved, low, high)
        lows, highs = ([b if k == mode else F for k, F in enumerate(known)] for b in (low, high))
        lows[mode], highs[mode] = (np.broadcast_to(b, known[mode].shape) for b in (low, high))
        held = Region(storage.shape, loss, np.concatenate(lows), np.concatenate(highs))
        objective = DenseObjective(storage, loss, self.tracker.settings.n_threads)
        newton = QuasiNewton(objective.gradient, held, stack(known), self.rng)
        for _ in range(EXTENSION_STEPS):
            newton.step()
            self.tracker.check_time()
        return parts(newton.point.A, storage.shape)[mode]
