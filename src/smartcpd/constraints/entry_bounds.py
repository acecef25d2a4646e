"""Bounds that every entry of a factor has for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd.constraints.base import Constraint
from smartcpd.errors import InvalidParameterError


@dataclass(frozen=True, eq=False)
class EntryBounds(Constraint):
    """Every entry has bounds of its own; one whose bounds are equal is known, and stays as it is.

    Parameters
    ----------
    low, high : (I x R) arrays
        The bounds; either may be infinite. `smartcpd.constraints.box` makes them of anything that
        broadcasts.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import constraints
    >>> rule = constraints.box(np.array([[0.0], [2.0]]), np.array([[1.0], [2.0]]))
    >>> rule.apply([[3.0], [7.0]])
    array([[1.],
           [2.]])
    """

    low: np.ndarray
    high: np.ndarray

    bounded = True
    is_known = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of bounds, "box"; those of arrays cannot be asked for by name."""
        return "box"

    def __post_init__(self) -> None:
        low, high = (np.array(end, dtype=np.float64) for end in (self.low, self.high))
        try:
            low, high = np.broadcast_arrays(low, high)
        except ValueError:
            raise InvalidParameterError(
                f"box(lo, hi) got arrays of shapes {low.shape} and {high.shape}, which do not fit "
                "together."
            ) from None
        if low.ndim > 2:
            raise InvalidParameterError(
                f"box(lo, hi) bounds a factor, which has rows and columns; got shape {low.shape}."
            )
        if not (low <= high).all():
            where = tuple(int(i) for i in np.argwhere(~(low <= high))[0])
            raise InvalidParameterError(
                f"box(lo, hi) needs lo <= hi in every entry; at {where} lo is {low[where]:g} and "
                f"hi is {high[where]:g}."
            )
        if (np.isinf(low) & (low > 0) | np.isinf(high) & (high < 0)).any():
            raise InvalidParameterError("box(lo, hi) leaves no finite number to some entries.")
        for name, end in (("low", low), ("high", high)):
            fixed = end.copy()
            fixed.flags.writeable = False
            object.__setattr__(self, name, fixed)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EntryBounds)
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    def __hash__(self) -> int:
        return hash((self.low.tobytes(), self.high.tobytes()))

    @property
    def signed(self) -> bool:
        return bool((self.low < 0).any())

    @property
    def known(self) -> np.ndarray:
        """The entries whose value is known, as an array of True and False."""
        same: np.ndarray = self.low == self.high
        return same

    def within(self, *, nonnegative: bool) -> Constraint:
        """Return the same bounds, none below 0 where a model must not be negative.

        A value that is known to be negative stays, and is refused like every negative entry.

        Parameters
        ----------
        nonnegative : bool
            Whether the loss is defined for nonnegative models only.

        Returns
        -------
        Constraint

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints
        >>> rule = constraints.box(-np.inf, np.array([[1.0], [2.0]]))
        >>> rule.within(nonnegative=True).low
        array([[0.],
               [0.]])
        """
        if not nonnegative or not (np.isinf(self.low) & (self.low < 0)).any():
            return self
        return EntryBounds(np.where(np.isinf(self.low), 0.0, self.low), self.high)

    def of_shape(self, shape: tuple[int, int], mode: int) -> EntryBounds:
        """Return the same bounds, broadcast to all entries of a factor.

        Parameters
        ----------
        shape : tuple of two ints
            The rows and the components of the factor.
        mode : int
            The number of its mode, for the message of an error.

        Returns
        -------
        EntryBounds

        Raises
        ------
        InvalidParameterError
            If the bounds do not broadcast to the shape.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import constraints
        >>> rule = constraints.box(np.array([[0.0], [1.0]]), np.inf)
        >>> rule.of_shape((2, 3), mode=0).low.shape
        (2, 3)
        """
        try:
            return EntryBounds(*(np.broadcast_to(end, shape) for end in (self.low, self.high)))
        except ValueError:
            raise InvalidParameterError(
                f"The bounds of mode {mode} have shape {self.low.shape}, and its factor has "
                f"{shape[0]} rows and {shape[1]} columns. Give bounds for every entry, or arrays "
                "that broadcast."
            ) from None

    def apply(self, Z: Any, Gamma: Any = None, mirror: Any = None) -> np.ndarray:
        inside: np.ndarray = np.clip(np.asarray(Z, dtype=np.float64), self.low, self.high)
        return inside

    def __str__(self) -> str:
        count = int(self.known.sum())
        known = f", {count:,} of them known" if count else ""
        return f"bounds on {self.low.size:,} entries{known}"
