"""The page of a model that was made in Python, with what its data says of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from smartcpd._data.opening import as_storage
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import places_by_share
from smartcpd._inference.diagnosis.examine import case_of, examined
from smartcpd._problem.history import History, Status
from smartcpd.quality import measure
from smartcpd.report.write import write_report


def report(
    model: CPModel,
    path: str | os.PathLike[str] = "report.html",
    X: Any = None,
    absent: str = "zero",
    *,
    mask: Any = None,
    weights: Any = None,
    title: str | None = None,
    constraint: Any = "auto",
    status: Status | None = None,
    history: History | None = None,
    consensus: Consensus | None = None,
    settings: dict[str, Any] | None = None,
    compare_ranks: bool = False,
) -> Path:
    """Write a page about a model; see `smartcpd.CPModel.report` and `smartcpd.SmartCPD.report`."""
    order = places_by_share(model)  # that of the page, in which findings name components
    model = model[order]
    stability = None if consensus is None else consensus.summary.ordered(order.tolist())
    quality = diagnosis = rank = None
    if X is not None and model.loss_function is not None:
        storage = as_storage(X, absent, mask, weights)
        quality = measure(model, storage)
        case = case_of(
            model,
            storage,
            constraint=constraint,
            status=status,
            history=history,
            compare_ranks=compare_ranks,
        )
        diagnosis, rank = examined(case), case.rank
    return write_report(
        path,
        model,
        history=history,
        status=status,
        quality=quality,
        settings=settings,
        title=title,
        stability=stability,
        diagnosis=diagnosis,
        rank=rank,
    )
