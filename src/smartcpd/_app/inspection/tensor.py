"""A tensor: its size, its values, the losses that can describe them."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._data.files import format_of, read, split
from smartcpd._data.labels import taken_off
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import SparseStorage, SparseTensor
from smartcpd._data.storage.observed import observed_values
from smartcpd._data.tiled import TiledArray
from smartcpd._problem.loss_choice import choose_loss
from smartcpd.errors import SmartCPDError
from smartcpd.partitions import PartitionedTensor
from smartcpd.partitions.preflight import preflight

EXAMPLE_PARAMETERS = {"beta": "beta(0.5)", "negative-binomial": "negative-binomial(1)"}
COPIES_OF_FACTORS = 6
"""About how many arrays of the size of the factors a fit keeps: factors, gradients, averages, step
states.
"""
SPARSE_BELOW = 0.1
LARGE = 2e6
"""Number of cells above which it matters that a dense array is mostly zeros."""


def check_tensor(path: str, rank: int = 10) -> dict[str, Any]:
    """Return figures and advice about a file that holds a tensor, in types that JSON knows."""
    X = read(path)
    tensor, modes = taken_off(X)
    storage: Any = as_storage(tensor)
    if isinstance(storage, TiledArray):
        in_memory(storage, "check")
    sparse = isinstance(storage, SparseStorage)
    nonzeros, highest = _nonzeros_and_highest(storage)
    domains = {name: _complaint(storage, name) for name in losses.names()}
    found = {
        "file": path,
        "kind": "sparse" if sparse else "dense",
        "shape": list(storage.shape),
        "modes": None if modes is None else [mode.name for mode in modes],
        "dtype": str(storage.dtype if sparse else storage.array.dtype),
        "cells": storage.n_cells,
        "nonzeros": nonzeros,
        "density": 100.0 * nonzeros / storage.n_cells,
        "lowest": storage.lowest(),
        "highest": highest,
        "missing": storage.n_missing,
        "duplicates": _duplicates(path, storage),
        "bytes": storage.nbytes if sparse else storage.array.nbytes,
        "rank": rank,
        "factor_bytes": 8 * rank * sum(storage.shape) * COPIES_OF_FACTORS,
        "losses": domains,
    }
    found["advice"] = _advice(found, storage)
    return found


def _nonzeros_and_highest(storage: Any) -> tuple[int, float]:
    """Count the nonzeros and find the largest value of what is stored, which may exceed the
    memory.
    """
    nonzeros, highest = 0, -math.inf
    for values in observed_values(storage):
        if values.size:
            nonzeros += int(np.count_nonzero(values))
            highest = max(highest, float(values.max()))
    return nonzeros, 0.0 if highest == -math.inf else highest


def _complaint(storage: Any, name: str) -> str | None:
    """Say why a loss cannot describe the data, or return None."""
    loss = losses.get(EXAMPLE_PARAMETERS.get(name, name))
    try:
        storage.check(loss)
    except SmartCPDError as error:
        return str(error)
    if not loss.allows_zeros and storage.lowest() == 0:
        return f"X has zeros, and loss '{loss}' goes to infinity there."
    return None


def _duplicates(path: str, storage: Any) -> int:
    """Count the entries of a text file beyond the first of their cell."""
    file, _ = split(path)
    if ".tns" not in format_of(file).suffixes:
        return 0
    from smartcpd._data.tns import read_tns

    indices, values, shape = read_tns(file)
    stored = SparseTensor(tuple(indices), values, shape, absent="unobserved")
    return int(values.size - stored.nnz)


def _advice(found: dict[str, Any], storage: Any) -> list[str]:
    sentences = []
    if found["missing"]:
        what = "1 cell is" if found["missing"] == 1 else f"{found['missing']:,} cells are"
        sentences.append(f"{what} missing (NaN); a fit leaves that out.")
    try:
        choice = choose_loss(storage)
        sentences.append(f"Suggested loss: {choice.reason}.")
    except SmartCPDError as error:
        return [str(error)]
    for mode, size in enumerate(found["shape"]):
        if size == 1:
            sentences.append(f"Mode {mode} has one row and tells nothing; leave it out.")
    empty = _empty_rows(storage)
    for mode, count in enumerate(empty):
        if count:
            sentences.append(
                f"{count:,} of the {found['shape'][mode]:,} rows of mode {mode} are empty; "
                "numbering only those that occur saves memory."
            )
    if (
        found["kind"] == "dense"
        and found["density"] < 100 * SPARSE_BELOW
        and found["cells"] > LARGE
    ):
        sentences.append(
            "Most cells are zero; as a sparse tensor it fits sooner: "
            f"smartcpd convert {found['file']} sparse.tns"
        )
    memory = _memory()
    needed = found["bytes"] + found["factor_bytes"]
    if isinstance(storage, PartitionedTensor):
        sentences.append(f"A fit has it {preflight(storage, found['rank'])}.")
    elif memory and needed > memory:
        sentences.append(
            f"A fit needs about {needed / 1e9:,.1f} GB and there are {memory / 1e9:,.1f} GB; "
            "lower the rank, or keep fewer labels."
        )
    events_a_number = found["nonzeros"] / max(found["rank"] * sum(found["shape"]), 1)
    if events_a_number < 1:
        sentences.append(
            f"There are fewer nonzeros than numbers in a model of rank {found['rank']}; a lower "
            "rank, or fewer labels, gives components that can be trusted."
        )
    return sentences


def _empty_rows(storage: Any) -> list[int]:
    if not isinstance(storage, SparseStorage) or storage.absent != "zero":
        return []
    if not isinstance(storage, SparseTensor):
        return [int(np.count_nonzero(sums == 0)) for sums in storage.marginals()]
    pairs = zip(storage.shape, storage.indices, strict=True)
    return [size - int(np.unique(column).size) for size, column in pairs]


def _memory() -> int | None:
    """Return the bytes of memory of the machine, if it tells."""
    try:
        return math.prod(os.sysconf(name) for name in ("SC_PAGE_SIZE", "SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return None
