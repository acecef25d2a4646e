"""Which data has a likelihood that compares losses, and the dispersion that makes it highest."""

from __future__ import annotations

from smartcpd._data.storage import Storage
from smartcpd._data.storage.observed import is_whole
from smartcpd._fitting.model import CPModel
from smartcpd._inference.dispersion import Scatter
from smartcpd.losses import Data, Dispersion, Loss

ROUNDING = 1e-10
"""Noise below this share of the mean square is rounding: fits go no further than a
hundred-thousandth of the values.
"""


def has_density(loss: Loss, storage: Storage) -> bool:
    """Whether the loss gives values like these a probability.

    The user's own losses name no distribution; counts that are no whole numbers have none under
    distributions of counts.
    """
    return loss.has_density and (loss.data is not Data.COUNTS or is_whole(storage))


def fitted_scale(model: CPModel, storage: Storage) -> float:
    """Return the dispersion under which the data that a model was fitted to is most likely."""
    loss = model.loss_function
    assert loss is not None
    if loss.dispersion is not Dispersion.OPEN:
        return 1.0
    found = max(loss.likely_dispersion(Scatter(model, storage)), 1e-300)
    # The floor keeps rounding from deciding where data has no noise.
    return max(found, ROUNDING * storage.mean_square()) if loss.data is Data.REAL else found
