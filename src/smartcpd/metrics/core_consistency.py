"""Core consistency: whether components that share nothing are all that least squares asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._data.storage import Dense, as_storage
from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss

MOST_CELLS = 1 << 23
"""Of the tensor or of its core: what is worked on at once."""


def core_consistency(model: CPModel, X: Any, *, mask: Any = None) -> float:
    """The core consistency of a model of dense data, in per cent (Bro and Kiers, 2003).

    The core that describes X best with the factors of the model is compared with the one that CP
    assumes, ones where all indices agree and zeros elsewhere. Near 100 the components explain X on
    their own; a rank too high brings it down, below 50 and even below 0. Missing cells are taken to
    be as the model has them.

    Parameters
    ----------
    model : CPModel
        Under a loss whose mean is the model itself (gaussian, poisson, gamma, ...), or without one.
    X : array
        The data, dense.
    mask : boolean array, optional
        True where a cell was observed.

    Returns
    -------
    float
        At most 100.

    Examples
    --------
    >>> from smartcpd import CPModel, datasets, metrics
    >>> X, factors = datasets.gaussian((20, 20, 20), rank=2, random_state=0)
    >>> metrics.core_consistency(CPModel(factors), X) > 95
    True
    """
    storage = as_storage(X, mask=mask)
    if not applies(model.loss_function, model, storage):
        raise IncompatibleError(
            f"Core consistency is about dense data of at most {MOST_CELLS:,} cells whose mean is a "
            f"sum of components; got {model!r} and {type(X).__name__}."
        )
    assert isinstance(storage, Dense)
    core = storage.array.astype(np.float64)
    if storage.n_missing:
        assert storage.weights is not None
        core = np.where(storage.weights == 0, model.full(), core)
    factors = [A.astype(np.float64) for A in model.distribute().factors]
    if model.loss_function is not None and model.loss_function.mean_scale:
        factors[0] = factors[0] * model.loss_function.mean_scale
    for A in factors:
        # The first mode is contracted and its core index put last: after all modes, in order.
        core = np.tensordot(core, np.linalg.pinv(A), axes=(0, 1))
    ideal = np.zeros_like(core)
    ideal[(np.arange(model.rank),) * model.order] = 1.0
    return float(100.0 * (1.0 - np.square(core - ideal).sum() / model.rank))


def applies(loss: Loss | None, model: CPModel, storage: Any) -> bool:
    """Whether core consistency means something for a fit."""
    linear = loss is None or loss.mean_scale is not None
    small = isinstance(storage, Dense) and storage.n_cells <= MOST_CELLS
    return linear and small and model.rank**model.order <= MOST_CELLS
