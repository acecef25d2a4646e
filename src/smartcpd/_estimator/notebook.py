"""What a notebook shows of an estimator: its parameters, what it found, and the components."""

from __future__ import annotations

from smartcpd._estimator.judging import MeetsNewData
from smartcpd.report.notebook import components, panel, sentence


def shown_estimator(estimator: MeetsNewData) -> str:
    """Return HTML about an estimator."""
    first, *lines = repr(estimator).split("\n")
    if not hasattr(estimator, "model_"):
        return panel(repr(estimator))
    end = estimator.status_.reason.removesuffix(f"Loss {estimator.loss_reason_}.").strip()
    said = [sentence(line.strip()) for line in [*lines, end]]
    return panel(first, *said, components(estimator.model_))
