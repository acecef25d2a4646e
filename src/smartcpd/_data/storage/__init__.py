"""Storages: where the data lies and how compiled code reads it, one a file."""

from smartcpd._data.storage.base import DenseStorage, InMemory, SparseStorage, Storage
from smartcpd._data.storage.dense import Dense
from smartcpd._data.storage.sparse import SparseTensor

__all__ = [
    "Dense",
    "DenseStorage",
    "InMemory",
    "SparseStorage",
    "SparseTensor",
    "Storage",
]
