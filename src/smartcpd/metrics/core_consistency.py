"""Core consistency: whether components that do not interact describe the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Storage
from smartcpd._data.storage.conversion import as_dense
from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss

MOST_CELLS = 1 << 23
"""Number of cells, of the tensor or of its core, that are worked on at once."""


def core_consistency(model: CPModel, X: Any, *, mask: Any = None) -> float:
    """Return the core consistency of a model of dense data, in per cent.

    The core that describes X best with the factors of the model is compared with the one that CP
    assumes, ones where all indices agree and zeros elsewhere (Bro and Kiers, 2003). Near 100 the
    components explain X on their own; a rank too high brings it down, below 50 and even below 0.
    Missing cells are taken to be as the model has them.

    Parameters
    ----------
    model : CPModel
        A model under a loss whose mean is the model itself (gaussian, poisson, gamma, ...), or
        without one.
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
    storage, model = as_storage(X, mask=mask), model.with_exposure()
    if not applies(model.loss_function, model, storage):
        raise IncompatibleError(
            f"Core consistency is about dense data of at most {MOST_CELLS:,} cells whose mean is a "
            f"sum of components; got {model!r} and {type(X).__name__}."
        )
    data = as_dense(in_memory(storage, "Core consistency"))
    core = data.array.astype(np.float64)
    if data.weights is not None:
        core = np.where(data.weights == 0, model.full(), core)
    factors = [A.astype(np.float64) for A in model.distribute().factors]
    if model.loss_function is not None and model.loss_function.mean_scale:
        factors[0] = factors[0] * model.loss_function.mean_scale
    for A in factors:
        # The first mode is contracted and its core index put last, so that after all modes the
        # indices are in order again.
        core = np.tensordot(core, np.linalg.pinv(A), axes=(0, 1))
    ideal = np.zeros_like(core)
    ideal[(np.arange(model.rank),) * model.order] = 1.0
    return float(100.0 * (1.0 - np.square(core - ideal).sum() / model.rank))


def applies(loss: Loss | None, model: CPModel, storage: Storage) -> bool:
    """Whether core consistency means something for a fit."""
    linear = loss is None or loss.mean_scale is not None
    small = storage.absent == "none" and storage.n_cells <= MOST_CELLS
    return linear and small and model.rank**model.order <= MOST_CELLS
