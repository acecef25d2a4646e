"""The unit in which data is fitted: far from 1, squares and steps leave the range of numbers.

Where a loss allows it, data is divided by a power of two, fitted, and the model multiplied by it;
see `smartcpd._fitting.other_units`. The rest is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from smartcpd._data.storage import Storage
from smartcpd.constraints import Constraint
from smartcpd.errors import InvalidDataError
from smartcpd.losses import Domain, Loss

USUAL = (1e-6, 1e6)
"""Values of about this size are fitted as they are."""
FITTED = (1e-15, 1e15)
"""Values of about this size are fitted if they must be taken as they are."""
SQUARED = (1e-150, 1e150)
"""Values whose squares are numbers too."""
LARGEST = 300.0
"""The largest power of ten that a loss may be."""


def unit_of(
    storage: Storage, loss: Loss, constraints: Sequence[Constraint], scalable: Sequence[int]
) -> float:
    """Return the power of two by which data is divided before it is fitted, 1 for most data.

    ``scalable`` are the modes whose factors can be multiplied by it afterwards.
    """
    level = _level(storage)
    if level == 0 and storage.mean() == 0 and storage.lowest() >= 0:
        return 1.0  # nothing but zeros
    if _within(level, USUAL):
        return 1.0
    # Small values next to the eps inside a loss are another problem than the same values times 1e9;
    # large ones keep their size next to it, and counts their number next to the parameters'.
    has_eps = loss.domain is Domain.NONNEGATIVE
    scales = (
        loss.homogeneity is not None
        and abs(loss.homogeneity * math.log10(max(level, 1e-300))) < LARGEST
        and not (has_eps and level < 1)
        and len(scalable) > 0
        and not any(c.penalises for c in constraints)
        and storage.fit_needs(1) is None  # it is in memory, and can be copied
    )
    if scales and _within(level, SQUARED):
        return 2.0 ** round(math.log2(level / (USUAL[1] if has_eps else 1.0)))
    if _within(level, FITTED):
        return 1.0
    low, high = SQUARED if scales else FITTED
    about = f"of about {level:.3g}" if _within(level, SQUARED) else "whose squares are no numbers"
    raise InvalidDataError(
        f"X has values {about}, and a fit of {type(storage).__name__} data with loss '{loss}' and "
        f"these constraints needs values between {low:g} and {high:g}. Measure X in other units; "
        "the factors scale with it."
    )


def _level(storage: Storage) -> float:
    """About how large values are: of sparse data, those that are stored."""
    with np.errstate(over="ignore"):
        square = storage.mean_square()
    if storage.absent == "zero":
        square *= storage.n_cells / max(storage.n_stored, 1)
    return math.sqrt(square)


def _within(level: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= level <= limits[1]
