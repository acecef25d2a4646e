"""Both tails of a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

TINY = np.finfo(float).tiny
"""A mean that is as good as zero for distributions that have none at zero."""


def tails_of(distribution: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(X <= x) and P(X >= x) of a frozen distribution of SciPy's.

    Those of a discrete one both include x itself.
    """
    discrete = hasattr(distribution.dist, "pmf")
    return distribution.cdf(x), distribution.sf(np.ceil(x) - 1.0 if discrete else x)
