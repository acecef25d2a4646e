"""A tensor: its size, its values, the losses that can describe them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from smartcpd import losses
from smartcpd._app.inspection.suggestion import OTHER_RANKS, SOME_RANK
from smartcpd._common.memory import of_machine
from smartcpd._data.files import format_of, read, split
from smartcpd._data.labelled import taken_off
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.tns import read_tns
from smartcpd._problem.loss_choice import choose_loss
from smartcpd.errors import SmartCPDError
from smartcpd.partitions import PartitionedTensor

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
    storage = as_storage(tensor)
    form = _form(storage)
    nonzeros, highest = _nonzeros_and_highest(storage)
    domains = {name: _complaint(storage, name) for name in losses.names()}
    found = {
        "file": path,
        "kind": form.kind,
        "shape": list(storage.shape),
        "modes": None if modes is None else [mode.name for mode in modes],
        "dtype": str(storage.dtype),
        "cells": storage.n_cells,
        "nonzeros": nonzeros,
        "density": 100.0 * nonzeros / storage.n_cells,
        "lowest": storage.lowest(),
        "highest": highest,
        "missing": storage.n_missing,
        "duplicates": _duplicates(path),
        "bytes": form.nbytes,
        "rank": rank,
        "factor_bytes": 8 * rank * sum(storage.shape) * COPIES_OF_FACTORS,
        "losses": domains,
    }
    found["advice"] = _advice(found, storage, form.empty_rows)
    return found


class _Form(NamedTuple):
    """How a tensor is stored."""

    kind: str
    nbytes: int
    empty_rows: Sequence[int]
    """How many rows of each mode nothing happened in; empty where that is no waste of memory."""


@singledispatch
def _form(storage: Storage) -> _Form:
    """Say how a tensor is stored; refuse one that is not in memory, unless it is listed here."""
    return _form(in_memory(storage, "check"))


@_form.register
def _(storage: Dense) -> _Form:
    return _Form("dense", storage.array.nbytes, ())


@_form.register
def _(storage: SparseTensor) -> _Form:
    if storage.absent != "zero":
        return _Form("sparse", storage.nbytes, ())
    pairs = zip(storage.shape, storage.indices, strict=True)
    empty = [size - int(np.unique(column).size) for size, column in pairs]
    return _Form("sparse", storage.nbytes, empty)


@_form.register
def _(storage: PartitionedTensor) -> _Form:
    sums = storage.marginals() if storage.absent == "zero" else []
    return _Form("sparse", storage.nbytes, [int(np.count_nonzero(each == 0)) for each in sums])


def _nonzeros_and_highest(storage: Storage) -> tuple[int, float]:
    """Count the observed cells that are not 0, and find the largest value of any."""
    nonzeros, highest = 0, -math.inf
    for values in storage.observed_values():
        if values.size:
            nonzeros += int(np.count_nonzero(values))
            highest = max(highest, float(values.max()))
    return nonzeros, 0.0 if highest == -math.inf else highest


def _complaint(storage: Storage, name: str) -> str | None:
    """Say why a loss cannot describe the data, or return None."""
    loss = losses.get(losses.registry.classes[name].spelled or name)
    try:
        storage.check(loss)
    except SmartCPDError as error:
        return str(error)
    if not loss.allows_zeros and storage.lowest() == 0:
        return f"X has zeros, and loss '{loss}' goes to infinity there."
    return None


def _duplicates(path: str) -> int:
    """Count the entries of a text file beyond the first of their cell."""
    file, _ = split(path)
    if ".tns" not in format_of(file).suffixes:
        return 0
    indices, values, shape = read_tns(file)
    stored = SparseTensor(tuple(indices), values, shape, absent="unobserved")
    return int(values.size - stored.nnz)


def _advice(found: dict[str, Any], storage: Storage, empty_rows: Sequence[int]) -> list[str]:
    sentences = []
    if found["missing"]:
        one = found["missing"] == 1
        what = "1 cell is" if one else f"{found['missing']:,} cells are"
        sentences.append(f"{what} missing (NaN); a fit leaves {'it' if one else 'them'} out.")
    try:
        choice = choose_loss(storage)
        sentences.append(f"Suggested loss: {choice.reason}.")
    except SmartCPDError as error:
        return [str(error)]
    for mode, size in enumerate(found["shape"]):
        if size == 1:
            sentences.append(f"Mode {mode} has one row and tells nothing; leave it out.")
    for mode, count in enumerate(empty_rows):
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
    memory = of_machine()
    needed = found["bytes"] + found["factor_bytes"]
    needs = storage.fit_needs(found["rank"])
    if needs is not None:
        sentences.append(f"A fit has it {needs}.")
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
    command = shlex.join(["smartcpd", "fit", found["file"], *SOME_RANK])
    return [*sentences, f"To begin with: {command}", OTHER_RANKS]
