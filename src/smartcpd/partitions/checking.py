"""Checks of what a partitioned folder holds, before compiled code reads it.

Compiled code follows indices without looking: one beyond a mode would read or write memory of
others. Each file is checked once, where it is read.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from smartcpd._data.storage.entries import MAX_ROWS, Entries
from smartcpd._data.storage.sparse import ABSENT
from smartcpd.errors import DataNotFoundError, InvalidDataError
from smartcpd.partitions.manifest import FIGURES, NAME, Manifest, Part

NUMBERS = "buif"
"""The kinds of dtypes that are real numbers."""
MOST = int(np.finfo(np.float64).max)
COUNTED = ("first", "last", "nnz", "n_missing")
MEASURED = ("total", "squares", "lowest", "highest", "weight")


def check_manifest(folder: Path, manifest: Manifest) -> None:
    """Raise an error unless the manifest describes a tensor that a folder can hold."""
    fault = _fault_of_tensor(manifest) or _fault_of_parts(manifest)
    if fault:
        raise InvalidDataError(f"{folder / NAME} is damaged ({fault}); write the folder anew.")
    for part in manifest.parts:
        if not (folder / part.file).is_file():
            raise DataNotFoundError(f"{folder / part.file} is missing; write the folder anew.")


def _fault_of_tensor(manifest: Manifest) -> str:
    shape = manifest.shape
    if len(shape) < 2 or not all(_is_count(size) and size > 0 for size in shape):
        return f"shape is {shape!r}"
    if sum(shape) >= MAX_ROWS:
        return f"shape {shape!r} has {sum(shape):,} rows in all, and the limit is {MAX_ROWS:,}"
    if manifest.absent not in ABSENT:
        return f"absent is {manifest.absent!r}"
    if not _is_count(manifest.mode) or manifest.mode >= len(shape):
        return f"mode is {manifest.mode!r}"
    if type(manifest.weighted) is not bool:
        return f"weighted is {manifest.weighted!r}"
    for name in ("heaviest", "typical"):
        if not _is_number(getattr(manifest, name)):
            return f"{name} is {getattr(manifest, name)!r}"
    try:
        kind = np.dtype(manifest.dtype).kind
    except (TypeError, ValueError, SyntaxError):
        kind = "V"
    if kind not in NUMBERS or not isinstance(manifest.dtype, str):
        return f"dtype is {manifest.dtype!r}"
    for name in ("names", "kinds"):
        given = getattr(manifest, name)
        if given is not None and (
            len(given) != len(shape) or not all(isinstance(text, str) for text in given)
        ):
            return f"{name} are {given!r} for {len(shape)} modes"
    return "" if all(isinstance(note, str) for note in manifest.notes) else "notes are not text"


def _fault_of_parts(manifest: Manifest) -> str:
    if not manifest.parts:
        return "it names no parts"
    rows, a_row = 0, math.prod(manifest.shape) // manifest.shape[manifest.mode]
    for part in manifest.parts:
        if not isinstance(part.file, str) or Path(part.file).name != part.file:
            return f"{part.file!r} is not the name of a file in the folder"
        for name in COUNTED:
            if not _is_count(getattr(part, name)):
                return f"{name} of {part.file} is {getattr(part, name)!r}"
        for name in MEASURED:
            if not _is_number(getattr(part, name)):
                return f"{name} of {part.file} is {getattr(part, name)!r}"
        if not rows <= part.first <= part.last < manifest.shape[manifest.mode]:
            return f"{part.file} has rows {part.first} to {part.last}, after {rows} others"
        if not part.n_missing <= part.nnz <= a_row * (part.last - part.first + 1):
            return f"{part.file} has {part.nnz} entries, {part.n_missing} of them missing"
        rows = part.last + 1
    return ""


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= np.iinfo(np.int64).max


def _is_number(value: object) -> bool:
    """Whether it is a number; infinite ones are the business of the check of the data."""
    if type(value) is int:
        return abs(value) <= MOST
    return type(value) is float and not math.isnan(value)


def check_figures(folder: Path, manifest: Manifest, figures: dict[str, np.ndarray]) -> None:
    """Raise an error unless sums, samples and rows are of the sizes that the manifest tells."""
    sample = figures.get("sample_values", np.empty((0, 0))).shape
    wanted = {"sample_values": NUMBERS} | ({"sample_weights": "f"} if manifest.weighted else {})
    fault = ""
    for name, kinds in wanted.items():
        fault = fault or _fault_of_array(figures, name, kinds, sample, None)
    for n, size in enumerate(manifest.shape):
        fault = (
            fault
            or _fault_of_array(figures, f"marginals_{n}", "f", (size,), None)
            or _fault_of_array(figures, f"row_weights_{n}", "f", (size,), None)
            or _fault_of_array(figures, f"unobserved_{n}", "iu", None, size)
            or _fault_of_array(figures, f"sample_{n}", "iu", sample, size)
        )
    if fault:
        raise InvalidDataError(f"{folder / FIGURES} is damaged ({fault}); write the folder anew.")


def _fault_of_array(
    figures: dict[str, np.ndarray],
    name: str,
    kinds: str,
    shape: tuple[int, ...] | None,
    size: int | None,
) -> str:
    """Say what is wrong with an array: its absence, its type, its shape, or an index in it."""
    if name not in figures:
        return f"{name} is not there"
    array = figures[name]
    if not isinstance(array, np.ndarray):  # bytes, where it does not begin as an array
        return f"{name} is no array"
    if array.dtype.kind not in kinds or not array.dtype.isnative or array.ndim != 1:
        return f"{name} has dtype {array.dtype} and shape {array.shape}"
    if shape is not None and array.shape != shape:
        return f"{name} has {array.size} values"
    if size is not None and array.size and not 0 <= int(array.min()) <= int(array.max()) < size:
        return f"{name} names rows beyond the {size} that there are"
    return ""


def check_entries(path: Path, manifest: Manifest, part: Part, entries: Entries) -> None:
    """Raise an error unless a part has the entries of its rows, as many as the manifest tells."""
    if entries.values.size != part.nnz:
        fault = f"it has {entries.values.size:,} entries, and {NAME} tells of {part.nnz:,}"
    else:
        fault = _fault_of_entries(manifest, part, entries)
    if fault:
        raise InvalidDataError(f"{path} is damaged ({fault}); write the folder anew.")


def _fault_of_entries(manifest: Manifest, part: Part, entries: Entries) -> str:
    if entries.values.dtype.kind not in NUMBERS:
        return f"its values are of dtype {entries.values.dtype}"
    weights = entries.weights
    if weights is not None and (weights.dtype != np.float64 or not weights.min(initial=0) >= 0):
        return "its weights are no numbers from 0 on"
    for n, (column, size) in enumerate(zip(entries.columns, manifest.shape, strict=True)):
        low, high = (part.first, part.last) if n == manifest.mode else (0, size - 1)
        if column.dtype.kind not in "iu":
            return f"its indices of mode {n} are of dtype {column.dtype}"
        if column.size and not low <= int(column.min()) <= int(column.max()) <= high:
            wrong = int(column.min()) if column.min() < low else int(column.max())
            return f"index {wrong} of mode {n} is not among its rows, {low} to {high}"
    return ""
