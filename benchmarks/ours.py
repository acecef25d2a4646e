"""Our own fits of sparse data, timed like the peers': when was which loss reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.real_data import SparseData
from smartcpd import SmartCPD, SparseTensor
from smartcpd.history import History


def tensor_of(data: SparseData) -> SparseTensor:
    """Counts in the smallest integers that hold them."""
    return SparseTensor(
        data.indices, data.values.astype(np.min_scalar_type(int(data.values.max()))), data.shape
    )


def history_of(X: SparseTensor, rank: int, loss: str, **choices: Any) -> History:
    """The history of a fit whose compilation is over before its clock starts."""
    SmartCPD(rank, loss, max_epochs=2, random_state=0, **choices).fit(X)
    return SmartCPD(rank, loss, random_state=choices.pop("seed", 0), **choices).fit(X).history_


def seconds_to(history: History, rank: int, target: float) -> float:
    """When a model of the wanted rank first had the target loss; infinity if never."""
    return next(
        (r.time for r in history if r.loss <= target and "components" not in r.phase), float("inf")
    )
