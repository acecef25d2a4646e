"""The door through which users' data becomes a storage, whatever it is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from smartcpd._common.memory import budget
from smartcpd._data.labelled import LabelledTensor, taken_off
from smartcpd._data.storage import Dense, SparseStorage, SparseTensor, Storage
from smartcpd._data.tiled import TiledArray, opened
from smartcpd._data.tiled.source import source_of
from smartcpd.errors import IncompatibleError
from smartcpd.partitions.tensor import PartitionedTensor


def as_storage(
    X: Any,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
    max_memory: str | int | None = None,
) -> Storage:
    """Return the storage for what the user passed.

    ``absent`` says what sparse data leaves out; ``mask`` and ``weights`` which cells of dense data
    were observed, and how much they count. Data on disk stays there if it needs more than
    ``max_memory``.
    """
    X, _ = taken_off(X)
    if isinstance(X, Dense | TiledArray):
        return X
    if isinstance(X, SparseStorage) or _is_sparse(X):
        if mask is not None or weights is not None:
            name, own = ("weights", "weights") if mask is None else ("mask", "missing")
            raise IncompatibleError(
                f"{name}= is for dense arrays, and X is sparse ({type(X).__name__}). Say it of the "
                f"tensor itself: SparseTensor(indices, values, shape, {own}=...)."
            )
        if isinstance(X, PartitionedTensor):
            X = X.with_absent(absent).within(max_memory)
        return X if isinstance(X, PartitionedTensor) else SparseTensor.of(X, absent)
    if absent != "zero":
        raise IncompatibleError(
            f"absent={absent!r} is about cells that sparse data does not store; X is dense "
            f"({type(X).__name__}). Pass a SparseTensor of the observed cells."
        )
    mask, weights = taken_off(mask)[0], taken_off(weights)[0]
    return opened(X, mask, weights, max_memory) or Dense.of(X, mask, weights)


def within_memory(X: Any, max_memory: str | int | None) -> Any:
    """Return the same data with its labels, loaded if it is on disk and needs no more than that."""
    if isinstance(X, LabelledTensor):
        return replace(X, tensor=within_memory(X.tensor, max_memory))
    if isinstance(X, PartitionedTensor):
        return X.within(budget(max_memory))
    return X if source_of(X) is None else as_storage(X, max_memory=max_memory)


def in_memory(storage: Storage, purpose: str) -> Dense | SparseTensor:
    """Return the storage if all of it is in memory, which ``purpose`` needs; raise an error
    if not.
    """
    if isinstance(storage, Dense | SparseTensor):
        return storage
    shape = "x".join(map(str, storage.shape))
    raise IncompatibleError(
        f"{purpose} needs X in memory, and this one, of shape {shape}, is larger than that. Pass a "
        "part of it, such as some of its slices."
    )


def _is_sparse(X: Any) -> bool:
    """Whether X is a sparse array of SciPy or pydata, or a pyttb sptensor; none need be
    installed.
    """
    module = type(X).__module__.split(".")[0]
    return (
        hasattr(X, "tocoo")
        or (module == "sparse" and hasattr(X, "coords"))
        or (module == "pyttb" and hasattr(X, "subs"))
    )
