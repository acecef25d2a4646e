"""Modes that share a factor: senders and receivers of a network, say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._common.stacked import offsets, parts
from smartcpd.constraints import Constraint, EntryBounds, box
from smartcpd.errors import IncompatibleError, InvalidParameterError

SAYS = "A shared factor is written same=[(0, 1)]: a list of groups of modes, each by number or name"


@dataclass(frozen=True)
class SharedModes:
    """The groups of modes that have one factor, and what that does to stacked factors.

    All modes keep their place in the stack, with equal rows. The mean over such rows projects on
    the stacks that are allowed: gradients in this projection are those of the shared factors, and
    no method has to know of another set of parameters.

    Examples
    --------
    >>> import numpy as np
    >>> shared = SharedModes(((0, 1),), (1, 1, 2))
    >>> shared.mean(np.array([[1.0], [3.0], [5.0], [7.0]])).T
    array([[2., 2., 5., 7.]])
    """

    groups: tuple[tuple[int, ...], ...] = ()
    shape: tuple[int, ...] = ()

    @classmethod
    def checked(cls, same: Any, shape: tuple[int, ...]) -> SharedModes:
        """Return the groups that a user named by the numbers of their modes."""
        groups: list[set[int]] = []
        for group in listed_groups(same):
            for mode in group:
                if not isinstance(mode, int | np.integer) or not 0 <= mode < len(shape):
                    raise InvalidParameterError(
                        f"same names mode {mode!r}, but the modes of X are 0 to {len(shape) - 1}. "
                        f"{SAYS}."
                    )
            named = {int(mode) for mode in group}
            if len(named) < 2:
                raise InvalidParameterError(
                    f"same has the group {tuple(group)!r}, and a factor is shared by at least two "
                    f"modes. {SAYS}."
                )
            touching = [other for other in groups if other & named]
            groups = [other for other in groups if not other & named]
            groups.append(named.union(*touching))
        for modes in groups:
            if len({shape[mode] for mode in modes}) > 1:
                told = ", ".join(f"mode {mode} has {shape[mode]}" for mode in sorted(modes))
                raise IncompatibleError(
                    f"Modes share a factor if they are of one length, row by row the same things; "
                    f"{told}. Give both all rows, with empty ones where nothing was seen."
                )
        return cls(tuple(sorted(tuple(sorted(group)) for group in groups)), tuple(shape))

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def repeats(self) -> tuple[int, ...]:
        """The modes whose factor is that of an earlier mode."""
        return tuple(sorted(mode for group in self.groups for mode in group[1:]))

    @property
    def modes(self) -> tuple[int, ...]:
        """All modes that share their factor with another."""
        return tuple(sorted(mode for group in self.groups for mode in group))

    def mean(self, A: np.ndarray) -> np.ndarray:
        """Return stacked arrays with the mean over shared rows in each of their places."""
        if not self.groups:
            return A
        out = A.copy()
        starts = offsets(self.shape)
        for group in self.groups:
            rows = [slice(starts[mode], starts[mode + 1]) for mode in group]
            mean = sum(A[each] for each in rows) / len(rows)
            for each in rows:
                out[each] = mean
        return out

    def from_first(self, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return factors with that of the first mode of each group in all of its modes."""
        out = list(factors)
        for first, *others in self.groups:
            for mode in others:
                out[mode] = out[first].copy()
        return out

    def averaged(self, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return arrays, one for each mode, with the mean over each group in all of its modes."""
        return parts(self.mean(np.concatenate(factors)), self.shape) if self else list(factors)

    def rows_in_all(self, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return row numbers, one array for each mode, that all modes of a group have."""
        out = list(rows)
        for first, *others in self.groups:
            common = rows[first]
            for mode in others:
                common = np.intersect1d(common, rows[mode])
            for mode in (first, *others):
                out[mode] = common
        return out

    def constrained(
        self, chosen: Sequence[Constraint], given: Sequence[bool]
    ) -> tuple[Constraint, ...]:
        """Return constraints that hold for shared factors: those of one mode hold for all.

        Parameters
        ----------
        chosen : sequence of Constraint
            One for each mode.
        given : sequence of bool
            Whether the user chose it; a default gives way to what was chosen for another mode.
        """
        out = list(chosen)
        for group in self.groups:
            named = [mode for mode in group if given[mode]] or list(group[:1])
            rule = chosen[named[0]]
            for mode in named[1:]:
                common = _common(rule, chosen[mode])
                if common is None:
                    raise IncompatibleError(
                        f"Modes {named[0]} and {mode} share a factor, and nothing serves both of "
                        f"their constraints, '{rule}' and '{chosen[mode]}'. Give both the same."
                    )
                rule = common
            for mode in group:
                out[mode] = rule
        return tuple(out)


NONE_SHARED = SharedModes()


def _common(one: Constraint, other: Constraint) -> Constraint | None:
    """Return what two constraints allow together, if that is a constraint that we have."""
    if one == other:
        return one
    ends = []
    for rule in (one, other):
        pair = (rule.low, rule.high) if isinstance(rule, EntryBounds) else rule.bounds
        if pair is None:
            return None
        ends.append(pair)
    low, high = np.maximum(ends[0][0], ends[1][0]), np.minimum(ends[0][1], ends[1][1])
    for rule, (lowest, highest) in zip((one, other), ends, strict=True):
        if np.array_equal(low, lowest) and np.array_equal(high, highest):
            return rule
    return box(low, high) if np.all(low <= high) else None


def listed_groups(same: Any) -> list[tuple[Any, ...]]:
    """Return the groups of modes; a single one may be written without a list around it."""
    if same is None:
        return []
    if isinstance(same, str) or not isinstance(same, Iterable):
        raise InvalidParameterError(f"same is {same!r}. {SAYS}.")
    listed = list(same)
    if listed and all(isinstance(mode, int | np.integer | str) for mode in listed):
        return [tuple(listed)]
    for group in listed:
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise InvalidParameterError(f"same has the group {group!r}. {SAYS}.")
    return [tuple(group) for group in listed]
