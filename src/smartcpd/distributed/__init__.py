"""Fits on a Dask cluster: the data stays with the workers, whose sums are added up.

A *shard* is what one worker holds: neighbouring parts of a partitioned folder, or an element of a
list of tensors. `worker` is what runs there, `pool` sends the questions and survives lost workers,
`tensor` is the storage that fits see, and `rounds` are updates that workers make on their own.
Dense arrays that all workers can read are not shared out: `arrays` sends tasks about parts of them.
"""

from smartcpd.distributed.cluster import Cluster

__all__ = ["Cluster"]
