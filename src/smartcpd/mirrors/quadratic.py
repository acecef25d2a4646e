"""phi(a) = a² / 2: the mirror step is a gradient step."""

from dataclasses import dataclass

from smartcpd.mirrors.base import Mirror


@dataclass(frozen=True)
class Quadratic(Mirror):
    """phi(a) = a² / 2, derivative a. Plain gradient steps, any sign, exact zeros."""

    name = "quadratic"
    signed = True

    @property
    def floor(self):
        return 0.0

    @staticmethod
    def potential(a, p):
        return 0.5 * a * a

    @staticmethod
    def to_dual(a, p):
        return a

    @staticmethod
    def to_primal(z, p):
        return z

    @staticmethod
    def move(a, v, p):
        return a - v
