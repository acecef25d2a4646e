"""Losses as candidates of a selection, some with a parameter that is estimated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._data.storage import Storage
from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.likelihood import has_density
from smartcpd._problem.loss_choice import choose_loss
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Dispersion, Loss
from smartcpd.losses.negative_binomial import NegativeBinomial
from smartcpd.quality.reading import Reading, reading_of

ESTIMATED = NegativeBinomial.name
"""The name that a user writes for negative-binomial counts whose r is to be found."""
HIGHEST_R = 1e3
"""The upper bound of r, times the mean count if that is above 1. Beyond it, nothing tells
negative-binomial counts from Poisson ones.
"""
AT_BOUND = 0.5
"""The share of the highest r from which on it is taken for infinite."""
CELLS = 1 << 18
"""Number of cells of the training data by which r is estimated."""


@dataclass(frozen=True)
class Candidate:
    """A loss that may be chosen; ``loss`` is None where r is estimated."""

    loss: Loss | None

    def __str__(self) -> str:
        return ESTIMATED if self.loss is None else str(self.loss)

    @property
    def n_estimated(self) -> int:
        """Number of parameters that are estimated along with the factors."""
        return int(self.loss is None or self.loss.dispersion is Dispersion.OPEN)

    @property
    def plain(self) -> Candidate | None:
        """The loss that this one becomes at the limit of its own parameter, if there is one."""
        return Candidate(losses.get("poisson")) if self.loss is None else None

    @property
    def typical(self) -> Loss:
        """A loss by which data and parameters are checked."""
        return NegativeBinomial(1.0) if self.loss is None else self.loss


def as_candidate(loss: Any, storage: Storage) -> Candidate:
    """Make a candidate from a loss or its name; "auto" is what `choose_loss` finds."""
    if isinstance(loss, str) and loss.strip() == ESTIMATED:
        return Candidate(None)
    if isinstance(loss, str) and loss == "auto":
        return Candidate(choose_loss(storage).loss)
    return Candidate(losses.get(loss))


def candidates_of(wanted: Any, storage: Storage) -> list[Candidate]:
    """Return the losses to compare, of which at least one is left; the plainest first."""
    if isinstance(wanted, str) and wanted == "auto":
        usual = choose_loss(storage).loss
        found = [as_candidate(loss, storage) for loss in (usual, *usual.alternatives)]
        if not has_density(usual, storage):
            return found[:1]
        return [c for c in found if has_density(c.typical, storage)]
    alone = isinstance(wanted, str | Loss)
    given = [wanted] if alone or not isinstance(wanted, Iterable) else list(wanted)
    if not given:
        raise InvalidParameterError("losses is empty; name at least one loss, or use 'auto'.")
    found = list(dict.fromkeys(as_candidate(loss, storage) for loss in given))
    for candidate in found:
        storage.check(candidate.typical)
        if len(found) > 1 and not has_density(candidate.typical, storage):
            raise IncompatibleError(
                f"Loss '{candidate}' gives values like those of X no probability, so it cannot be "
                "compared with other losses. Select its rank alone: losses="
                f"{str(candidate)!r}."
            )
    return found


def estimated_r(means: CPModel, storage: Storage) -> float:
    """Return the r under which counts with these means are most likely."""
    factors = [A.astype(np.float64) for A in means.distribute().factors]
    loss = means.loss_function
    assert loss is not None
    x, m, w = _cells(reading_of(storage, factors, loss, seed=0))
    mean = np.maximum(np.asarray(loss.mean(m, loss.params)), 1e-12)
    return float(NegativeBinomial.likeliest(x, mean, w, highest_r(storage)).r)


def highest_r(storage: Storage) -> float:
    return HIGHEST_R * max(1.0, storage.mean())


def is_overdispersed(means: CPModel, storage: Storage) -> bool:
    """Whether counts scatter so much around their means that r can be told from infinity."""
    return estimated_r(means, storage) < AT_BOUND * highest_r(storage)


def with_r(model: CPModel, r: float) -> list[np.ndarray]:
    """Return factors of the same means under negative-binomial(r), whose mean is r times the
    model.
    """
    assert model.loss_function is not None
    before = model.loss_function.mean_scale
    assert before is not None
    scale = (before / r) ** (1.0 / model.order)
    return [A * scale for A in model.distribute().factors]


def _cells(reading: Reading) -> Sequence[np.ndarray]:
    """Return values, model values and weights of the observed cells, or of some of them."""
    batches = list(reading.batches())
    x, m, w = (
        np.concatenate([getattr(batch, name) for batch in batches]) for name in ("x", "m", "weight")
    )
    step = max(1, x.size // CELLS)
    if step == 1 or not reading.whole:
        return x, m, w
    chosen = np.random.default_rng(0).choice(x.size, CELLS, replace=False)
    return x[chosen], m[chosen], w[chosen]
