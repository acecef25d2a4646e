"""Sparse tensors larger than memory: folders of parts, each with some rows of the longest mode.

`manifest` says what a folder holds, `parquet` reads and writes its files, `writing` makes it (from
pieces by way of a `spool`, with the `figures` that fits ask for); `tensor` is the storage, and
`fit_needs` says what a fit will take.
"""

from smartcpd.partitions.tensor import PartitionedTensor
from smartcpd.partitions.writing import write_pieces, write_tensor

__all__ = ["PartitionedTensor", "write_pieces", "write_tensor"]
