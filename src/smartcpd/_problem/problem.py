"""The problem: names resolved to pieces once, defaults filled in, clashes refused.

Nothing below this module looks at a string.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from smartcpd import constraints, losses, mirrors, sampling, steps
from smartcpd._common.stacked import offsets
from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Storage
from smartcpd._problem.known import with_known
from smartcpd._problem.loss_choice import Choice, choose_loss
from smartcpd._problem.shared import NONE_SHARED, SharedModes
from smartcpd._problem.units import unit_of
from smartcpd.constraints import Constraint, EntryBounds
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError
from smartcpd.losses import Domain, Loss
from smartcpd.losses.base import EPS
from smartcpd.mirrors import Mirror
from smartcpd.sampling import Sampler
from smartcpd.steps import Step
from smartcpd.steps.mixed import Mixed, SettlingAdagrad

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Phase:
    """A stretch of the fit with one step rule and one mirror map a mode.

    ``until`` is the change of the loss from one epoch to the next that ends it; None for the last.
    """

    step: Step
    mirrors: tuple[Mirror, ...]
    until: float | None = None


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
        phases = _phases(resolved_loss, chosen, maps, step)
        for phase in phases:
            _check_phase(resolved_loss, chosen, phase)
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


def check_integer(name: str, value: Any, at_least: int) -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < at_least:
        raise InvalidParameterError(
            f"{name} must be a whole number of at least {at_least}; got {value!r}."
        )


def check_number(name: str, value: Any, at_least: float) -> None:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not at_least <= float(value) < np.inf:
        raise InvalidParameterError(
            f"{name} must be a finite number of at least {at_least:g}; got {value!r}."
        )


def by_mode(kind: str, choice: Any, order: int) -> list[Any]:
    """Return one choice for each mode, from a single one, a sequence, or a mapping from modes."""
    if isinstance(choice, Mapping):
        for mode in choice:
            if not isinstance(mode, numbers.Integral) or not 0 <= int(mode) < order:
                raise InvalidParameterError(
                    f"{kind} names mode {mode!r}, but the modes of X are 0 to {order - 1}."
                )
        return [choice.get(mode, "auto") for mode in range(order)]
    if isinstance(choice, list | tuple):
        if len(choice) != order:
            raise InvalidParameterError(
                f"{kind} lists {len(choice)} choices, but X has {order} modes. Give one for each "
                'mode, a single one for all, or a dict such as {0: "..."}.'
            )
        return list(choice)
    return [choice] * order


def _phases(
    loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any], step: str | Step
) -> tuple[Phase, ...]:
    if step == "auto":
        step = loss.default_step if _jensen_fits(loss, chosen, maps) else "adagrad"
    rule = steps.get(step)
    if isinstance(rule, Mixed):
        settled = tuple(mirrors.get("quadratic") for _ in chosen)
        return (
            Phase(steps.get("jensen"), _maps(loss, chosen, maps, jensen=True), rule.switch),
            Phase(SettlingAdagrad(), settled),
        )
    return (Phase(rule, _maps(loss, chosen, maps, jensen=rule.needs_convex_part)),)


def _maps(
    loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any], jensen: bool
) -> tuple[Mirror, ...]:
    return tuple(
        _default_mirror(loss, constraint, jensen) if m == "auto" else mirrors.get(m)
        for m, constraint in zip(maps, chosen, strict=True)
    )


def _default_mirror(loss: Loss, constraint: Constraint, jensen: bool) -> Mirror:
    if jensen and loss.jensen_mirror:
        return mirrors.get(loss.jensen_mirror)
    if constraint.needs_quadratic or constraint.signed:
        return mirrors.get("quadratic")
    if constraint.columnwise:
        return mirrors.get("entropy")
    return mirrors.get(loss.default_mirror)


def _jensen_fits(loss: Loss, chosen: tuple[Constraint, ...], maps: list[Any]) -> bool:
    if loss.jensen_mirror is None:
        return False
    phi = mirrors.get(loss.jensen_mirror)
    fits = [m == "auto" or mirrors.get(m) == phi for m in maps]
    return all(fits) and not any(
        c.signed or (c.needs_quadratic and phi.name != "quadratic") for c in chosen
    )


def _check_phase(loss: Loss, chosen: tuple[Constraint, ...], phase: Phase) -> None:
    for mode, (constraint, phi) in enumerate(zip(chosen, phase.mirrors, strict=True)):
        if loss.domain is Domain.NONNEGATIVE and constraint.signed:
            raise IncompatibleError(
                f"Loss '{loss}' needs a nonnegative model, but constraint '{constraint}' of mode "
                f"{mode} lets entries be negative. Use constraint='nonnegative'."
            )
        if constraint.signed and not phi.signed:
            raise IncompatibleError(
                f"Mirror map '{phi}' is defined for nonnegative entries only, but constraint "
                f"'{constraint}' of mode {mode} lets them be negative. "
                "Use mirror='quadratic' or constraint='nonnegative'."
            )
        if constraint.needs_quadratic and phi.name != "quadratic":
            raise IncompatibleError(
                f"Constraint '{constraint}' of mode {mode} has a projection for the quadratic map "
                f"only; got mirror '{phi}'. "
                + (
                    "Use step='adagrad'."
                    if phase.step.needs_convex_part
                    else "Use mirror='quadratic' or mirror='auto'."
                )
            )
        if phase.step.needs_convex_part:
            _check_jensen(loss, constraint, phi, mode)


def _check_jensen(loss: Loss, constraint: Constraint, phi: Mirror, mode: int) -> None:
    if loss.jensen_mirror is None:
        raise IncompatibleError(
            f"Loss '{loss}' has no mirror map under which Jensen steps majorise it. "
            "Use step='adagrad'."
        )
    if constraint.signed:
        raise IncompatibleError(
            f"Jensen steps need nonnegative factors, but constraint '{constraint}' of mode {mode} "
            "lets entries be negative. Use constraint='nonnegative' or step='adagrad'."
        )
    if phi != mirrors.get(loss.jensen_mirror):
        raise IncompatibleError(
            f"Jensen steps need mirror '{mirrors.get(loss.jensen_mirror)}' for loss '{loss}'; "
            f"got '{phi}' for mode {mode}. Use mirror='auto' or step='adagrad'."
        )
