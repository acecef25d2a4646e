"""What fits need to know before they read a tensor, gathered while its parts are made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.storage.entries import Entries
from smartcpd.partitions.manifest import Manifest, Part

SAMPLE = 1 << 16
"""Number of entries that are kept as a sample, to judge scales by."""
TINY = 1e-300


class Figures:
    """What is known of each part, sums over rows and a sample of entries, added up part by part."""

    def __init__(self, shape: tuple[int, ...], absent: str, count: int) -> None:
        self.shape = shape
        self.absent = absent
        self.count = count
        self.parts: list[Part] = []
        self._dtype: np.dtype = np.dtype(bool)
        self._heaviest = 1.0 if absent == "zero" else 0.0
        self._sums = [np.zeros(size) for size in shape]
        self._weights = [np.zeros(size) for size in shape]
        """The weights of the entries of each row, less what zeros in their place would have."""
        self._seen = [np.zeros(size, np.int64) for size in shape]
        """Missing cells of each row where others are zero; entries where others are unobserved."""
        self._rng = np.random.default_rng(0)
        self._sample: list[Entries] = []

    def add(self, name: str, first: int, last: int, entries: Entries) -> None:
        """Add a part, which has the entries of rows ``first`` to ``last``."""
        self.parts.append(_described(name, first, last, entries))
        self._dtype = np.promote_types(self._dtype, entries.values.dtype)
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
        self._heaviest = max(self._heaviest, float(w.max()))
        wanted = min(x.size, round(SAMPLE * x.size / max(self.count, 1)) + 1)
        chosen = self._rng.choice(x.size, wanted, replace=False, shuffle=False)
        self._sample.append(entries.at(np.sort(chosen)))

    def summary(
        self, mode: int, modes: Sequence[Mode] | None = None, notes: Sequence[str] = ()
    ) -> tuple[Manifest, dict[str, np.ndarray]]:
        """Return the manifest of all parts and the arrays that belong to it."""
        arrays = self._arrays()
        manifest = Manifest(
            self.shape,
            self._dtype.name,
            self.absent,
            mode,
            tuple(self.parts),
            "sample_weights" in arrays,
            self._heaviest,
            self._typical(arrays),
            None if modes is None else tuple(m.name for m in modes),
            None if modes is None else tuple(str(m.kind) for m in modes),
            tuple(notes),
        )
        return manifest, arrays

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that the folder keeps."""
        n_cells = float(np.prod([float(size) for size in self.shape]))
        zeros = self.absent == "zero"
        sample = Entries.joined(self._sample)
        found: dict[str, np.ndarray] = {}
        for n, size in enumerate(self.shape):
            means = zeros + self._weights[n] * (size / n_cells)
            sums = self._sums[n]
            if zeros and sample.weights is not None:
                sums = np.where(means > 0, sums / np.maximum(means, TINY), 0.0)
            unseen = round(n_cells / size) if zeros else 0
            found[f"marginals_{n}"] = sums
            found[f"row_weights_{n}"] = means
            found[f"unobserved_{n}"] = np.flatnonzero(self._seen[n] == unseen)
            found[f"sample_{n}"] = sample.columns[n]
        found["sample_values"] = sample.values
        if sample.weights is not None:
            found["sample_weights"] = sample.weights
        return found

    def _typical(self, arrays: dict[str, np.ndarray]) -> float:
        """Return about how large a model is at the entries; see `SparseTensor.typical`."""
        total = sum(part.total for part in self.parts)
        if self.absent == "unobserved":
            return total / max(sum(part.weight for part in self.parts), TINY)
        if total <= 0:
            return total / float(np.prod([float(size) for size in self.shape]))
        model = np.full(arrays["sample_values"].size, total)
        for n in range(len(self.shape)):
            model *= arrays[f"marginals_{n}"][arrays[f"sample_{n}"]] / total
        return float(model.mean())


def _described(name: str, first: int, last: int, entries: Entries) -> Part:
    """Return what the manifest says of a part."""
    x = entries.values.astype(np.float64)
    w = entries.weights
    seen = x if w is None else x[w > 0]
    weighted = x if w is None else w * x
    return Part(
        file=name,
        first=int(first),
        last=int(last),
        nnz=x.size,
        total=float(weighted.sum()),
        squares=float(weighted @ x),
        lowest=float(seen.min(initial=np.inf)) if seen.size else 0.0,
        highest=float(seen.max(initial=-np.inf)) if seen.size else 0.0,
        whole=entries.values.dtype.kind != "f" or bool((seen == np.floor(seen)).all()),
        weight=float(x.size if w is None else w.sum()),
        n_missing=0 if w is None else int(np.count_nonzero(w == 0)),
    )
