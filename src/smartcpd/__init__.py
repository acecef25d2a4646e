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

import sys


def _is_the_program() -> bool:
    """Whether this import is the first step of the command line, not of somebody's program."""
    first = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = first.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    return name == "smartcpd" or (first == "-m" and "smartcpd" in sys.orig_argv)


if _is_the_program():
    import signal

    # Ctrl-C in the first instants ends the process without a traceback; soon the command line
    # answers it, see `smartcpd._app.signals`.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

# Gives models and histories their verbs.
from smartcpd import _verbs as _verbs  # noqa: E402

if TYPE_CHECKING:
    from smartcpd import (
        constraints,
        datasets,
        errors,
        losses,
        metrics,
        plots,
    )
    from smartcpd import distributed as distributed
    from smartcpd import mirrors as mirrors
    from smartcpd import partitions as partitions
    from smartcpd import quality as quality
    from smartcpd import report as report
    from smartcpd import sampling as sampling
    from smartcpd import solvers as solvers
    from smartcpd import steps as steps
    from smartcpd._common.version import __version__
    from smartcpd._data.files import read, write
    from smartcpd._data.labelled import LabelledTensor
    from smartcpd._data.labels import Mode
    from smartcpd._data.rates import rates as rates
    from smartcpd._data.storage import SparseTensor
    from smartcpd._data.tables import from_table
    from smartcpd._estimator import SmartCPD
    from smartcpd._fitting.explaining import explain
    from smartcpd._fitting.fit import decompose
    from smartcpd._fitting.model import CPModel
    from smartcpd._inference.replication import replicate
    from smartcpd._inference.selection import cross_validate, select
    from smartcpd._problem.loss_choice import choose_loss
    from smartcpd.partitions import PartitionedTensor as PartitionedTensor

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
    "errors",
    "explain",
    "from_table",
    "losses",
    "metrics",
    "plots",
    "read",
    "replicate",
    "select",
    "write",
]

FURTHER = [
    "PartitionedTensor",
    "distributed",
    "mirrors",
    "partitions",
    "quality",
    "rates",
    "report",
    "sampling",
    "solvers",
    "steps",
]
"""Public as well, for those who look for them: parts of the method, large data, clusters, pages,
rates of data with an exposure."""

_FOUND_IN = {
    "CPModel": "_fitting.model",
    "LabelledTensor": "_data.labelled",
    "Mode": "_data.labels",
    "PartitionedTensor": "partitions",
    "SmartCPD": "_estimator",
    "SparseTensor": "_data.storage",
    "__version__": "_common.version",
    "choose_loss": "_problem.loss_choice",
    "cross_validate": "_inference.selection",
    "decompose": "_fitting.fit",
    "explain": "_fitting.explaining",
    "from_table": "_data.tables",
    "rates": "_data.rates",
    "read": "_data.files",
    "replicate": "_inference.replication",
    "select": "_inference.selection",
    "write": "_data.files",
}
"""Modules of names that are no modules themselves."""


def __getattr__(name: str) -> Any:
    """Import a name on its first use.

    The package itself imports nothing that takes time, so that the program can look after signals
    before it loads anything.
    """
    if name in _FOUND_IN:
        found = getattr(import_module(f"smartcpd.{_FOUND_IN[name]}"), name)
    elif name in __all__ or name in FURTHER:
        found = import_module(f"smartcpd.{name}")
    else:
        hint = "; models are read by smartcpd.CPModel.load(path)" if name == "load" else ""
        raise AttributeError(f"module 'smartcpd' has no attribute {name!r}{hint}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *FURTHER})
