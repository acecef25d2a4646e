"""Storages: where the data lies and how compiled code reads it. One a file."""

from smartcpd.storage.base import Storage, as_storage
from smartcpd.storage.dense import Dense

__all__ = ["Dense", "Storage", "as_storage"]
