"""Find the hidden components of multi-way data, with the loss that fits the data.

Examples
--------
>>> import smartcpd
>>> X, _ = smartcpd.datasets.count((20, 20, 20), rank=2, random_state=0)
>>> model = smartcpd.decompose(X, 2, "poisson", random_state=0)
>>> model.rank
2
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smartcpd import _verbs as _verbs  # gives models and histories their verbs
from smartcpd import constraints, datasets, losses, metrics, mirrors, sampling, steps
from smartcpd._common.version import __version__
from smartcpd._data.files import read, write
from smartcpd._data.labels import LabelledTensor, Mode
from smartcpd._data.storage import SparseTensor
from smartcpd._fitting.fit import decompose, explain
from smartcpd._fitting.model import CPModel
from smartcpd._problem.loss_choice import choose_loss
from smartcpd.partitions import PartitionedTensor

if TYPE_CHECKING:
    from smartcpd import distributed, partitions, plots, quality, report
    from smartcpd._data.tables import from_table
    from smartcpd._estimator import SmartCPD
    from smartcpd._inference.selection import cross_validate, select

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "CPModel",
    "LabelledTensor",
    "Mode",
    "PartitionedTensor",
    "SmartCPD",
    "SparseTensor",
    "__version__",
    "choose_loss",
    "constraints",
    "cross_validate",
    "datasets",
    "decompose",
    "distributed",
    "explain",
    "from_table",
    "losses",
    "metrics",
    "mirrors",
    "partitions",
    "plots",
    "quality",
    "read",
    "report",
    "sampling",
    "select",
    "steps",
    "write",
]


def __getattr__(name: str) -> Any:
    """Import what is slow to import on first use.

    scikit-learn, which `SmartCPD` needs, alone would double the time of ``import smartcpd``.
    """
    if name == "SmartCPD":
        from smartcpd._estimator import SmartCPD

        return SmartCPD
    if name == "from_table":
        from smartcpd._data.tables import from_table

        return from_table
    if name in ("cross_validate", "select"):
        return getattr(import_module("smartcpd._inference.selection"), name)
    if name in ("distributed", "partitions", "plots", "quality", "report"):
        return import_module(f"smartcpd.{name}")
    raise AttributeError(f"module 'smartcpd' has no attribute {name!r}")
