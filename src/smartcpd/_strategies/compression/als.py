"""Least squares on a core, from several starts at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import offsets, unstack
from smartcpd._kernels.core_sweeps import compiled_core_sweeps

MOMENTUM = 0.5
"""The momentum at first."""
LARGE = 1 << 15
"""Number of entries of a core from which on float32 is worth its haste."""


@dataclass
class Starts:
    """Stacked factors (starts x rows x rank), improved by themselves and compared.

    A sweep of alternating least squares begins where the last two results point to. A start whose
    residual rises goes back and makes a plain sweep.
    """

    core: np.ndarray
    factors: np.ndarray

    @classmethod
    def random(cls, core: np.ndarray, rank: int, n_starts: int, rng: np.random.Generator) -> Starts:
        precision = np.float32 if core.size > LARGE else np.float64
        normal = [rng.standard_normal((n_starts, size, rank)) for size in core.shape]
        return cls(core.astype(precision), np.concatenate(normal, axis=1).astype(precision))

    def __post_init__(self) -> None:
        n_starts = len(self.factors)
        self.square = float(np.vdot(self.core, self.core))
        self.residuals = np.full(n_starts, np.inf)
        self.momentum = np.full(n_starts, MOMENTUM)
        self.plain = np.ones(n_starts, bool)
        self.before = self.factors.copy()

    def sweep(self, times: int) -> None:
        shape = self.core.shape
        compiled_core_sweeps(self.core.dtype.name)(
            np.ascontiguousarray(self.core.reshape(-1, shape[-1])),
            np.array(shape),
            offsets(shape),
            self.square,
            times,
            self.factors,
            self.before,
            self.residuals,
            self.momentum,
            self.plain,
        )

    def best(self, n: int) -> Starts:
        """The starts with the smallest residuals, to go on with."""
        chosen = np.argsort(self.residuals, kind="stable")[:n]
        few = Starts(self.core, self.factors[chosen])
        few.residuals = self.residuals[chosen]
        few.momentum = self.momentum[chosen]
        few.plain = self.plain[chosen]
        few.before = self.before[chosen]
        return few

    def joined(self, others: Starts) -> Starts:
        """Return these starts and others, to go on with side by side."""
        both = Starts(self.core, np.concatenate([self.factors, others.factors]))
        for name in ("residuals", "momentum", "plain", "before"):
            setattr(both, name, np.concatenate([getattr(self, name), getattr(others, name)]))
        return both

    def factors_of(self, start: int) -> list[np.ndarray]:
        return unstack(self.factors[start].astype(np.float64), self.core.shape)

    def agree(self) -> bool:
        """Whether the first two starts found the same components."""
        return same_components(self.factors_of(0), self.factors_of(1))
