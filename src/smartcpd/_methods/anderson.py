"""Anderson's acceleration: where the last few steps of a slow descent lead to.

Near a solution, steps that shrink slowly follow a linear rule; a combination of the last of them
that would leave no step at all is far ahead on the way (Anderson, 1965; Walker and Ni, 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

DEPTH = 8
"""Number of steps that are combined."""
DAMPING = 1e-10
"""Relative size of what keeps the combination of nearly parallel steps small."""


@dataclass
class Anderson:
    """The last points of a descent, and the points that its steps led to."""

    points: list[np.ndarray] = field(default_factory=list)
    images: list[np.ndarray] = field(default_factory=list)
    kept: ClassVar[tuple[str, ...]] = ("points", "images")

    def beyond(self, point: np.ndarray, image: np.ndarray) -> np.ndarray | None:
        """Return where steps lead to, after one from ``point`` to ``image``; None at first."""
        self.points = [*self.points[-DEPTH:], point]
        self.images = [*self.images[-DEPTH:], image]
        if len(self.points) < 2:
            return None
        steps = np.stack([g - x for x, g in zip(self.points, self.images, strict=True)])
        steps = steps.reshape(len(steps), -1)
        changes = np.diff(steps, axis=0)
        gram = changes @ changes.T
        gram[np.diag_indices_from(gram)] += DAMPING * np.trace(gram)
        if not np.isfinite(gram).all() or not gram.any():
            return None
        shares = np.linalg.solve(gram, changes @ steps[-1])
        apart = np.diff(np.stack(self.images), axis=0)
        return image - np.tensordot(shares, apart, axes=1)

    def forget(self) -> None:
        """Begin anew, after a leap that was no gain."""
        self.points, self.images = [], []
