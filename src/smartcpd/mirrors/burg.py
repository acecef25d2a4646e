"""phi(a) = -log a: the mirror step of multiplicative updates."""

from dataclasses import dataclass

import numpy as np

from smartcpd.mirrors.base import MAX_GROWTH, TINY, Mirror


@dataclass(frozen=True)
class Burg(Mirror):
    """phi(a) = -log a, derivative -1 / a. With Jensen steps, the multiplicative update."""

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
        return a / max(1.0 + a * v, 1.0 / MAX_GROWTH)
