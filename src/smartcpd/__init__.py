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
from smartcpd import constraints, datasets, errors, losses, metrics
from smartcpd import mirrors as mirrors
from smartcpd import sampling as sampling
from smartcpd import steps as steps
from smartcpd._common.version import __version__
from smartcpd._data.files import read, write
from smartcpd._data.labels import LabelledTensor, Mode
from smartcpd._data.storage import SparseTensor
from smartcpd._fitting.fit import decompose, explain
from smartcpd._fitting.model import CPModel
from smartcpd._problem.loss_choice import choose_loss
from smartcpd.partitions import PartitionedTensor as PartitionedTensor

if TYPE_CHECKING:
    from smartcpd import distributed, plots
    from smartcpd import partitions as partitions
    from smartcpd import quality as quality
    from smartcpd import report as report
    from smartcpd import solvers as solvers
    from smartcpd._data.tables import from_table
    from smartcpd._estimator import SmartCPD
    from smartcpd._inference.selection import cross_validate, select

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "CPModel",
    "LabelledTensor",
    "Mode",
    "SmartCPD",
    "SparseTensor",
    "__version__",
    "choose_loss",
    "constraints",
    "cross_validate",
    "datasets",
    "decompose",
    "distributed",
    "errors",
    "explain",
    "from_table",
    "losses",
    "metrics",
    "plots",
    "read",
    "select",
    "write",
]

FURTHER = [
    "PartitionedTensor",
    "mirrors",
    "partitions",
    "quality",
    "report",
    "sampling",
    "solvers",
    "steps",
]
"""Public as well, for those who look for them: pieces of the method, data on disk, pages."""

_ON_FIRST_USE = {
    "SmartCPD": "smartcpd._estimator",
    "cross_validate": "smartcpd._inference.selection",
    "from_table": "smartcpd._data.tables",
    "select": "smartcpd._inference.selection",
}
"""Names from modules that would double the time of ``import smartcpd``."""


def __getattr__(name: str) -> Any:
    """Import what is needed on first use only."""
    if name in _ON_FIRST_USE:
        return getattr(import_module(_ON_FIRST_USE[name]), name)
    if name in ("distributed", "partitions", "plots", "quality", "report", "solvers"):
        return import_module(f"smartcpd.{name}")
    raise AttributeError(f"module 'smartcpd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *FURTHER})
