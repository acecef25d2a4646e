"""Figures of a storage that are known before anything is read, from its manifest."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from smartcpd._data.storage.base import SparseStorage
from smartcpd._data.storage.events import Events
from smartcpd._data.storage.summed_up import TINY
from smartcpd.errors import InvalidDataError
from smartcpd.losses import Data, Loss
from smartcpd.partitions.manifest import Manifest


class DescribedStorage(SparseStorage):
    """A storage whose sizes, sums and scales are known from a manifest."""

    manifest: Manifest
    figures: dict[str, np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.manifest.shape

    @property
    def absent(self) -> str:  # type: ignore[override]
        return self.manifest.absent

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.manifest.dtype)

    @property
    def nnz(self) -> int:
        return self.n_events - self.n_missing

    @property
    def nbytes(self) -> int:
        """Bytes that the entries take in memory."""
        return self.manifest.entry_bytes * self.n_events

    @property
    def n_missing(self) -> int:
        return sum(part.n_missing for part in self.manifest.parts)

    @cached_property
    def n_observed(self) -> float:
        weight = sum(part.weight for part in self.manifest.parts)
        if self.absent == "unobserved":
            return weight if self.weighted else self.nnz
        known = self.n_cells - self.n_missing
        return known + (weight - self.nnz) if self.weighted else known

    @property
    def weighted(self) -> bool:
        return self.manifest.weighted

    @property
    def heaviest(self) -> float:
        return self.manifest.heaviest

    @property
    def row_weights(self) -> list[np.ndarray]:
        return self._by_mode("row_weights")

    def unobserved_rows(self) -> list[np.ndarray]:
        return self._by_mode("unobserved")

    def marginals(self) -> list[np.ndarray]:
        return self._by_mode("marginals")

    def _by_mode(self, name: str) -> list[np.ndarray]:
        return [self.figures[f"{name}_{n}"] for n in range(len(self.shape))]

    def some_events(self, count: int, rng: np.random.Generator) -> Events:
        columns, values = tuple(self._by_mode("sample")), self.figures["sample_values"]
        kept = Events(columns, values, self.shape, self.figures.get("sample_weights"))
        return kept.at(rng.integers(len(kept), size=min(count, len(kept))))

    @property
    def n_events(self) -> int:
        return sum(part.nnz for part in self.manifest.parts)

    def mean(self) -> float:
        return sum(part.total for part in self.manifest.parts) / max(self.n_observed, TINY)

    def mean_square(self) -> float:
        return sum(part.squares for part in self.manifest.parts) / max(self.n_observed, TINY)

    def typical(self) -> float:
        return self.manifest.typical

    def lowest(self) -> float:
        stored = min(part.lowest for part in self.manifest.parts)
        return stored if self.absent == "unobserved" else min(stored, 0.0)

    def check(self, loss: Loss) -> None:
        self.check_zeros(loss, "write the folder with absent='unobserved'")
        lowest, allowed = loss.data.value
        for part in self.manifest.parts:
            bad = [x for x in (part.lowest, part.highest) if not np.isfinite(x) or x < lowest]
            if loss.data is Data.BINARY and not bad and not (part.whole and part.highest <= 1):
                bad = [part.highest]
            if bad:
                raise InvalidDataError(
                    f"{part.file} holds {bad[0]:g}: loss '{loss}' needs {allowed}."
                )
