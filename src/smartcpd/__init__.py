"""smartcpd: the hidden components of multi-way data, with the loss that fits the data."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from smartcpd import constraints, datasets, losses, metrics, mirrors, sampling, steps
from smartcpd.files import read, write
from smartcpd.fitting import decompose, explain
from smartcpd.labels import LabelledTensor, Mode
from smartcpd.loss_choice import choose_loss
from smartcpd.model import CPModel
from smartcpd.storage import SparseTensor
from smartcpd.version import __version__

if TYPE_CHECKING:
    from smartcpd.estimator import SmartCPD
    from smartcpd.tables import from_table

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
    "datasets",
    "decompose",
    "explain",
    "from_table",
    "losses",
    "metrics",
    "mirrors",
    "read",
    "sampling",
    "steps",
    "write",
]


def __getattr__(name: str) -> Any:
    """`SmartCPD` on first use: scikit-learn alone would double the time of ``import smartcpd``."""
    if name == "SmartCPD":
        from smartcpd.estimator import SmartCPD

        return SmartCPD
    if name == "from_table":
        from smartcpd.tables import from_table

        return from_table
    raise AttributeError(f"module 'smartcpd' has no attribute {name!r}")
