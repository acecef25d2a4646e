"""smartcpd: the hidden components of multi-way data, with the loss that fits the data."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smartcpd import constraints, datasets, losses, metrics, mirrors, sampling, steps
from smartcpd.files import read, write
from smartcpd.fitting import decompose, explain
from smartcpd.labels import LabelledTensor, Mode
from smartcpd.loss_choice import choose_loss
from smartcpd.model import CPModel
from smartcpd.partitions import PartitionedTensor
from smartcpd.storage import SparseTensor
from smartcpd.version import __version__

if TYPE_CHECKING:
    from smartcpd import distributed, partitions, plots, quality, report
    from smartcpd.estimator import SmartCPD
    from smartcpd.selection import cross_validate, select
    from smartcpd.tables import from_table

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
    """What `SmartCPD` and pages need comes on first use: scikit-learn alone would double the time
    of ``import smartcpd``.
    """
    if name == "SmartCPD":
        from smartcpd.estimator import SmartCPD

        return SmartCPD
    if name == "from_table":
        from smartcpd.tables import from_table

        return from_table
    if name in ("cross_validate", "select"):
        return getattr(import_module("smartcpd.selection"), name)
    if name in ("distributed", "partitions", "plots", "quality", "report"):
        return import_module(f"smartcpd.{name}")
    raise AttributeError(f"module 'smartcpd' has no attribute {name!r}")
