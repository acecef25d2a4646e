"""The manifest of a partitioned folder: a small file of JSON, written last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.atomic import replace_file
from smartcpd._data.storage.entries import smallest
from smartcpd.errors import DataNotFoundError, InvalidDataError

VERSION = 1
NAME = "manifest.json"
FIGURES = "figures.npz"
LABELS = "labels.npz"


def entry_bytes(shape: Sequence[int], dtype: np.dtype, weighted: bool = False) -> int:
    """Return the bytes that an entry of a tensor takes in memory."""
    return sum(smallest(size).itemsize for size in shape) + dtype.itemsize + 8 * weighted


@dataclass(frozen=True)
class Part:
    """A file of a folder, with the entries of some neighbouring rows of the partitioned mode."""

    file: str
    first: int
    last: int
    nnz: int
    total: float
    """The sum of the values, each times its weight."""
    squares: float
    """The sum of the squares of the values, each times its weight."""
    lowest: float
    highest: float
    whole: bool
    """Whether all values are whole numbers."""
    weight: float
    """The sum of the weights; without weights, the number of entries."""
    n_missing: int = 0


@dataclass(frozen=True)
class Manifest:
    """A tensor, and the parts that it is kept in."""

    shape: tuple[int, ...]
    dtype: str
    absent: str
    mode: int
    """The mode whose rows are divided among the parts."""
    parts: tuple[Part, ...]
    weighted: bool = False
    heaviest: float = 1.0
    typical: float = 0.0
    names: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def entry_bytes(self) -> int:
        """Bytes that an entry takes in memory."""
        return entry_bytes(self.shape, np.dtype(self.dtype), self.weighted)

    def write(self, folder: Path) -> None:
        content = {"format": "smartcpd-parts", "version": VERSION, **asdict(self)}
        replace_file(folder / NAME, json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        try:
            content = json.loads((folder / NAME).read_bytes())
        except FileNotFoundError:
            raise DataNotFoundError(
                f"{folder} has no {NAME}, so it is no partitioned tensor, or was never finished; "
                "write it with 'smartcpd convert IN OUT.parts'."
            ) from None
        except ValueError as error:
            raise _damaged(folder, error) from None
        if not isinstance(content, dict) or content.pop("format", None) != "smartcpd-parts":
            raise InvalidDataError(f"{folder / NAME} does not describe a partitioned tensor.")
        version = content.pop("version", None)
        if version != VERSION:
            raise InvalidDataError(
                f"{folder} is of version {version} of the format, and this smartcpd reads "
                f"version {VERSION}; install a newer one, or write the folder anew."
            )
        return _checked(folder, content)


def _checked(folder: Path, content: dict[str, Any]) -> Manifest:
    try:
        parts = tuple(Part(**part) for part in content.pop("parts"))
        for name in ("shape", "names", "kinds", "notes"):
            optional = name in ("names", "kinds")
            if name in content and not (optional and content[name] is None):
                content[name] = tuple(content[name])
        manifest = Manifest(**content, parts=parts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _damaged(folder, error) from None
    return manifest


def _damaged(folder: Path, error: Exception) -> InvalidDataError:
    return InvalidDataError(f"{folder / NAME} is damaged ({error}); write the folder anew.")
