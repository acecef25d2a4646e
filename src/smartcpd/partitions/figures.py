"""Sums that fits need before they read a tensor, added up while its parts are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartcpd._data.storage.entries import Entries
from smartcpd.partitions.manifest import Part

SAMPLE = 1 << 16
"""Number of entries that are kept as a sample, to judge scales by."""
TINY = 1e-300


class Figures:
    """Sums over rows, and a sample of entries, added up part by part."""

    def __init__(self, shape: tuple[int, ...], absent: str, count: int) -> None:
        self.shape = shape
        self.absent = absent
        self.count = count
        self.heaviest = 1.0 if absent == "zero" else 0.0
        self._sums = [np.zeros(size) for size in shape]
        self._weights = [np.zeros(size) for size in shape]
        """The weights of the entries of each row, less what zeros in their place would have."""
        self._seen = [np.zeros(size, np.int64) for size in shape]
        """Missing cells of each row where others are zero; entries where others are unobserved."""
        self._rng = np.random.default_rng(0)
        self._sample: list[Entries] = []

    def add(self, entries: Entries) -> None:
        x = entries.values.astype(np.float64)
        w = np.ones(x.size) if entries.weights is None else entries.weights
        zeros = self.absent == "zero"
        missing = w == 0
        for n, (column, size) in enumerate(zip(entries.columns, self.shape, strict=True)):
            # Sums run over the rows that occur, since parts have few rows of a long mode.
            low = int(column.min())
            near = column - column.dtype.type(low)
            rows = slice(low, low + int(near.max()) + 1)
            self._sums[n][rows] += np.bincount(near, weights=w * x)
            self._weights[n][rows] += np.bincount(near, weights=w - zeros)
            counted = near[missing] if zeros else near
            self._seen[n][rows] += np.bincount(counted, minlength=rows.stop - rows.start)
            assert rows.stop <= size
        self.heaviest = max(self.heaviest, float(w.max()))
        wanted = min(x.size, round(SAMPLE * x.size / max(self.count, 1)) + 1)
        chosen = self._rng.choice(x.size, wanted, replace=False, shuffle=False)
        self._sample.append(entries.at(np.sort(chosen)))

    @property
    def weighted(self) -> bool:
        return any(sample.weights is not None for sample in self._sample)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that the folder keeps."""
        n_cells = float(np.prod([float(size) for size in self.shape]))
        zeros = self.absent == "zero"
        found: dict[str, np.ndarray] = {}
        for n, size in enumerate(self.shape):
            means = zeros + self._weights[n] * (size / n_cells)
            sums = self._sums[n]
            if self.weighted and zeros:
                sums = np.where(means > 0, sums / np.maximum(means, TINY), 0.0)
            unseen = round(n_cells / size) if zeros else 0
            found[f"marginals_{n}"] = sums
            found[f"row_weights_{n}"] = means
            found[f"unobserved_{n}"] = np.flatnonzero(self._seen[n] == unseen)
            found[f"sample_{n}"] = np.concatenate([s.columns[n] for s in self._sample])
        found["sample_values"] = np.concatenate([s.values for s in self._sample])
        if self.weighted:
            weights = [s.weights for s in self._sample if s.weights is not None]
            found["sample_weights"] = np.concatenate(weights)
        return found

    def typical(self, arrays: dict[str, np.ndarray], parts: Sequence[Part]) -> float:
        """Return about how large a model is at the entries; see `SparseTensor.typical`."""
        total = sum(part.total for part in parts)
        if self.absent == "unobserved":
            return total / max(sum(part.weight for part in parts), TINY)
        if total <= 0:
            return total / float(np.prod([float(size) for size in self.shape]))
        model = np.full(arrays["sample_values"].size, total)
        for n in range(len(self.shape)):
            model *= arrays[f"marginals_{n}"][arrays[f"sample_{n}"]] / total
        return float(model.mean())
