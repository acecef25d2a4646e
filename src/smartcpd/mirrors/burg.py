"""phi(a) = -log a: the mirror step of multiplicative updates."""

from dataclasses import dataclass

import numpy as np

from smartcpd.mirrors.base import MAX_GROWTH, TINY, Mirror


@dataclass(frozen=True)
class Burg(Mirror):
    """The map phi(a) = -log a, with derivative -1 / a, for positive factors.

    With Jensen steps it gives the multiplicative update.

    Examples
    --------
    >>> from smartcpd import mirrors
    >>> mirrors.get("burg").move(2.0, 0.5, mirrors.get("burg").params)
    1.0
    """

    name = "burg"

    @staticmethod
    def potential(a, p):
        return -np.log(np.maximum(a, TINY))

    @staticmethod
    def to_dual(a, p):
        return -1.0 / max(a, TINY)

    @staticmethod
    def to_primal(z, p):
        return -1.0 / min(z, -TINY)

    @staticmethod
    def move(a, v, p):
        return a / max(1.0 + a * v, 1.0 / min(p[1], MAX_GROWTH))
