"""Losses as candidates of a selection, some with a parameter that is estimated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from smartcpd import losses
from smartcpd._data.storage import InMemory, Storage
from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.likelihood import has_density
from smartcpd._objectives.parameter import likeliest
from smartcpd._problem.loss_choice import choose_loss
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Dispersion, Loss


@dataclass(frozen=True)
class Candidate:
    """A loss that may be chosen; where it is open, its parameter is estimated by every fit."""

    loss: Loss

    def __str__(self) -> str:
        return self.loss.name if self.loss.is_open else str(self.loss)

    @property
    def n_estimated(self) -> int:
        """Number of parameters that are estimated along with the factors."""
        return int(self.loss.is_open or self.loss.dispersion is Dispersion.OPEN)

    @property
    def plain(self) -> Candidate | None:
        """The loss that this one becomes at the limit of its own parameter, if there is one."""
        if not self.loss.is_open or self.loss.limit is None:
            return None
        return Candidate(losses.get(self.loss.limit))

    @property
    def typical(self) -> Loss:
        """A loss by which data and parameters are checked."""
        return self.loss.with_parameter(1.0) if self.loss.is_open else self.loss


def as_candidate(loss: Any, storage: Storage) -> Candidate:
    """Make a candidate from a loss or its name; "auto" is what `choose_loss` finds."""
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


def differs_from(model: CPModel, storage: InMemory, candidate: Candidate) -> bool:
    """Whether data scatters so widely around a model that an open loss can be told from its
    limit, which the model is of.
    """
    assert model.loss_function is not None
    factors = model.distribute().factors
    return not likeliest(candidate.loss, storage, factors, model.loss_function).is_infinite


def stages(candidates: list[Candidate]) -> list[list[Candidate]]:
    """Order the losses so that those that start from models of a plain relative come after it."""
    first = [c for c in candidates if c.plain not in candidates]
    return [first, [c for c in candidates if c not in first]]
