"""phi(a) = a^c: the family behind the beta-divergences."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import exp, log
from smartcpd.errors import InvalidParameterError
from smartcpd.mirrors.base import MAX_GROWTH, TINY, Mirror

PLAIN = {-1.0: "_inverse", -0.5: "_root"}
"""Exponents, of the gamma loss and of beta(0.5), whose formulas need roots and no general power,
with the endings of these formulas' names.
"""


@dataclass(frozen=True)
class Power(Mirror):
    """The map phi(a) = a^c, with derivative c a^(c-1), for nonnegative factors.

    Parameters
    ----------
    c : float
        The exponent, above 1 or below 0.

    Examples
    --------
    >>> from smartcpd import mirrors
    >>> mirrors.get("power(3)")
    Power(c=3)
    """

    c: float = 2.0

    name = "power"

    def __post_init__(self):
        if not (self.c > 1 or self.c < 0):
            raise InvalidParameterError(
                f"power(c) is convex only for c > 1 or c < 0; got c={self.c!r}. "
                "Use mirror='entropy' for a map between the two."
            )

    @property
    def max_growth(self):
        # Above 1 the dual has no upper end, and an entry at the floor must be able to return.
        return MAX_GROWTH if self.c < 0 else math.inf

    @staticmethod
    def potential(a, p):
        return np.maximum(a, TINY) ** p[0]

    @staticmethod
    def to_dual(a, p):
        return p[0] * exp((p[0] - 1.0) * log(max(a, TINY)))

    @staticmethod
    def to_primal(z, p):
        return exp(log(max(z / p[0], TINY)) / (p[0] - 1.0))

    @staticmethod
    def move(a, v, p):
        # In units of a^(c-1) the dual of a is 1, and it must stay positive.
        c = p[0]
        ratio = 1.0 - v / (c * max(exp((c - 1.0) * log(max(a, TINY))), TINY))
        factor = exp(log(max(ratio, TINY)) / (c - 1.0))
        return a * (min(factor, p[1], MAX_GROWTH) if c < 0.0 else max(factor, 1.0 / p[1]))

    def variant(self, formula):
        return f"_{formula}{PLAIN[self.c]}" if self.c in PLAIN else formula

    @staticmethod
    def _to_dual_inverse(a, p):
        return -1.0 / max(a * a, TINY)

    @staticmethod
    def _to_primal_inverse(z, p):
        return 1.0 / math.sqrt(max(-z, TINY))

    @staticmethod
    def _move_inverse(a, v, p):
        most = min(p[1], MAX_GROWTH)
        ratio = min(1.0 + v * a * a, 1.0 / TINY)
        return a / math.sqrt(max(ratio, 1.0 / (most * most)))

    @staticmethod
    def _to_dual_root(a, p):
        return -0.5 / max(a * math.sqrt(a), TINY)

    @staticmethod
    def _to_primal_root(z, p):
        return exp(log(max(-2.0 * z, TINY)) * (-2.0 / 3.0))

    @staticmethod
    def _move_root(a, v, p):
        ratio = min(1.0 + 2.0 * v * a * math.sqrt(a), 1.0 / TINY)
        return a * min(exp(log(max(ratio, TINY)) * (-2.0 / 3.0)), p[1], MAX_GROWTH)
