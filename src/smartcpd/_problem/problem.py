"""The problem: names resolved to pieces once, defaults filled in, clashes refused.

Nothing below this module looks at a string.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from smartcpd import constraints, losses, sampling
from smartcpd._common.parameters import by_mode, check_integer
from smartcpd._common.stacked import offsets
from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Storage
from smartcpd._problem.known import with_known
from smartcpd._problem.loss_choice import Choice, choose_loss
from smartcpd._problem.phases import Phase, phases_of
from smartcpd._problem.shared import NONE_SHARED, SharedModes
from smartcpd._problem.units import unit_of
from smartcpd.constraints import Constraint, EntryBounds
from smartcpd.errors import InvalidDataError
from smartcpd.losses import Domain, Loss
from smartcpd.losses.base import EPS
from smartcpd.sampling import Sampler
from smartcpd.steps import Step

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Problem:
    """Data, loss, constraints and the parts of the method, all checked against each other."""

    storage: Storage
    rank: int
    loss: Loss
    constraints: tuple[Constraint, ...]
    phases: tuple[Phase, ...]
    sampler: Sampler
    loss_reason: str = ""
    """Why the loss was chosen, if the values of the data chose it."""
    shared: SharedModes = NONE_SHARED
    """The modes that have one factor together."""

    @classmethod
    def build(
        cls,
        X: Any,
        rank: int,
        loss: str | Loss = "auto",
        mirror: Any = "auto",
        constraint: Any = "auto",
        step: str | Step = "auto",
        sampler: str | Sampler = "auto",
        absent: str = "zero",
        mask: Any = None,
        weights: Any = None,
        max_memory: str | int | None = None,
        fixed: Mapping[int, Any] | None = None,
        fixed_components: Sequence[Any] | None = None,
        same: Any = None,
    ) -> Problem:
        """Resolve names and defaults; check the data and every combination before any work."""
        check_integer("rank", rank, at_least=1)
        known = None if loss == "auto" else losses.get(loss)
        if known is not None:
            _ = known.params  # raises an error where they are not known yet
        storage = as_storage(X, absent, mask, weights, max_memory)
        resolved_loss, reason = Choice(known, "") if known else choose_loss(storage)
        order = len(storage.shape)
        needs_nonnegative = resolved_loss.domain is Domain.NONNEGATIVE
        default = "nonnegative" if needs_nonnegative else "free"
        asked = by_mode("constraint", constraint, order)
        chosen = tuple(
            constraints.get(default if _is_open(c) else c).within(nonnegative=needs_nonnegative)
            for c in asked
        )
        chosen = with_known(chosen, storage.shape, int(rank), fixed, fixed_components)
        shared = SharedModes.checked(same, storage.shape)
        known_modes = range(order) if fixed_components is not None else (fixed or {})
        given = [not _is_open(c) or n in known_modes for n, c in enumerate(asked)]
        chosen = shared.constrained(chosen, given)
        maps = by_mode("mirror", mirror, order)
        phases = phases_of(resolved_loss, chosen, maps, step)
        chosen_sampler = sampling.get(storage.usual_sampler if sampler == "auto" else sampler)
        chosen_sampler.check(storage)
        storage.check(resolved_loss)
        if needs_nonnegative:
            _check_scale(storage.typical(), resolved_loss)
        problem = cls(
            storage, int(rank), resolved_loss, chosen, phases, chosen_sampler, reason, shared
        )
        _ = problem.unit  # refuses what is beyond the range of numbers
        return problem

    @property
    def shape(self) -> tuple[int, ...]:
        return self.storage.shape

    @property
    def loss_remark(self) -> str:
        """A sentence about the choice of the loss, if the values of the data chose it."""
        return f"Loss {self.loss_reason}." if self.loss_reason else ""

    @property
    def scale_remark(self) -> str:
        """A sentence about penalties that scale escapes, if there are some: columns that cost
        something shrink while those of another mode, which cost nothing, grow.
        """
        fading = [n for n, c in enumerate(self.constraints) if c.fades]
        if not fading or not self.scalable:
            return ""
        price, grows = fading[0], self.scalable[0]
        return (
            f"There is no minimum: penalty '{self.constraints[price]}' of mode {price} fades as "
            f"its columns shrink and those of mode {grows} ('{self.constraints[grows]}') grow; "
            f"give mode {grows} a penalty too, or a size such as 'l2-ball'."
        )

    @property
    def unit(self) -> float:
        """The power of two by which the data is divided before it is fitted, 1 for most data."""
        return unit_of(self.storage, self.loss, self.constraints, self.scalable)

    @property
    def scalable(self) -> list[int]:
        """The modes whose factors can take on the scale of the data, at no cost."""
        apart = set(range(len(self.shape))) - set(self.shared.modes)
        return [n for n in sorted(apart) if self.constraints[n].cone]

    def stored_as(self, kind: type[Kind]) -> Kind:
        """The storage, for whoever serves problems of one kind of storage only."""
        assert isinstance(self.storage, kind), f"{self} is not stored as {kind.__name__}."
        return self.storage

    @property
    def has_entry_bounds(self) -> bool:
        """Whether some entries of a factor have bounds of their own, or are known."""
        return any(isinstance(c, EntryBounds) for c in self.constraints)

    @property
    def has_sums(self) -> bool:
        """Whether penalties are added up, so that projections are not compiled."""
        return any(c.is_sum for c in self.constraints)

    @property
    def needs_plain_descents(self) -> bool:
        """Whether merges, repairs and steps of one mode alone would break something: entries that
        are known, or a factor that modes share.
        """
        return self.has_entry_bounds or bool(self.shared)

    @property
    def freedom(self) -> int:
        """Count the numbers that a model is free to choose; the scale of a component counts
        once, and so does a factor that modes share.
        """
        own = [size for n, size in enumerate(self.shape) if n not in self.shared.repeats]
        return self.rank * (sum(own) - len(own) + 1)

    @property
    def has_background(self) -> bool:
        """Whether a sampled gradient covers the zeros of sparse data by a closed form."""
        return self.sampler.splits and self.storage.absent == "zero"

    @property
    def background_is_exact(self) -> bool:
        """Whether the closed form for the zeros leaves nothing to be sampled."""
        convex = any(p.step.needs_convex_part for p in self.phases)
        return self.loss.background is not None and (
            self.loss.convex_background is not None or not convex
        )

    def n_fibers(self, wanted: int | None) -> int:
        """Return the number of fibers that an iteration reads, ``wanted`` or a default."""
        if self.sampler.splits and (self.background_is_exact or not self.has_background):
            return 0
        if wanted is not None:
            return wanted
        if not self.sampler.splits:
            return 2 * self.rank
        # The remainder of the straight line for the zeros is small next to the noise of the events.
        mean_size = sum(self.shape) / len(self.shape)
        return max(1, int(self.sampler.n_events(self.storage) / (4 * mean_size)))

    def penalty(self, factors: Sequence[np.ndarray]) -> float:
        """Return what the constraints add to the loss, once for a factor that modes share."""
        return sum(
            self.constraints[n].penalty(A)
            for n, A in enumerate(factors)
            if n not in self.shared.repeats
        )

    @property
    def penalises(self) -> bool:
        """Whether some constraint is a penalty."""
        return any(c.penalises for c in self.constraints)

    def penalty_slope(self, A: np.ndarray) -> np.ndarray:
        """Return the derivative of what the constraints add, stacked like the factors A."""
        starts = offsets(self.shape)
        out = np.zeros_like(A)
        for n, constraint in enumerate(self.constraints):
            if n not in self.shared.repeats:
                rows = slice(starts[n], starts[n + 1])
                out[rows] = constraint.penalty_slope(A[rows])
        return out

    def __str__(self) -> str:
        def listed(pieces: Sequence[Any]) -> str:
            unique = list(dict.fromkeys(map(str, pieces)))
            return unique[0] if len(unique) == 1 else "[" + ", ".join(map(str, pieces)) + "]"

        phases = ", then ".join(f"{p.step} steps with {listed(p.mirrors)} map" for p in self.phases)
        shape = "x".join(map(str, self.shape))
        if self.storage.n_missing:
            shape += f" ({100 * self.storage.n_missing / self.storage.n_cells:.2g} % missing)"
        return (
            f"{shape}, rank {self.rank}, loss {self.loss}, "
            f"constraint {listed(self.constraints)}, {phases}, sampling {self.sampler}"
            + "".join(f", one factor for modes {_listed(group)}" for group in self.shared.groups)
        )


def _listed(modes: Sequence[int]) -> str:
    return " and ".join(map(str, modes))


def _is_open(choice: Any) -> bool:
    return isinstance(choice, str) and choice == "auto"


def _check_scale(typical: float, loss: Loss) -> None:
    """Refuse data that is too small next to the eps that keeps logarithms finite."""
    if 0 < typical < 100 * EPS:
        raise InvalidDataError(
            f"X has values of about {typical:.3g}, too close to the eps={EPS:g} inside loss "
            f"'{loss}'. Measure it in smaller units, for example X / {typical:.1g}; the factors "
            "scale with it."
        )
