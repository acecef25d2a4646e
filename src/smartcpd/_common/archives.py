"""Arrays as the archives that NumPy writes and reads."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np


def write_archive(
    file: Path | BinaryIO, arrays: Mapping[str, np.ndarray], compressed: bool = False
) -> None:
    """Write arrays as an npz file.

    An interrupt between two arrays leaves one of them open. NumPy closes the archive all the same
    and raises an error about that in the place of the interrupt, which is raised here as it came.
    """
    write = np.savez_compressed if compressed else np.savez
    try:
        write(file, **arrays)  # type: ignore[arg-type]
    except ValueError as error:
        interrupt = error.__context__
        if interrupt is None or isinstance(interrupt, Exception):
            raise
        raise interrupt from None


def archived(arrays: Mapping[str, np.ndarray], compressed: bool = False) -> bytes:
    """Return the content of an npz file of arrays."""
    buffer = io.BytesIO()
    write_archive(buffer, arrays, compressed)
    return buffer.getvalue()
