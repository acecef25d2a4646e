"""Numbers that say how good a decomposition is."""

from smartcpd.metrics.core_consistency import core_consistency
from smartcpd.metrics.factors import (
    factor_match_score,
    factor_mse,
    factor_mse_authors,
    factor_mse_joint,
)
from smartcpd.metrics.stationarity import kkt_residual, stationarity

__all__ = [
    "core_consistency",
    "factor_match_score",
    "factor_mse",
    "factor_mse_authors",
    "factor_mse_joint",
    "kkt_residual",
    "stationarity",
]
