"""phi(a) = a² / 2: the mirror step is a gradient step."""

from dataclasses import dataclass

from smartcpd.mirrors.base import Mirror


@dataclass(frozen=True)
class Quadratic(Mirror):
    """The map phi(a) = a² / 2, with derivative a, whose steps are plain gradient steps.

    Entries may have any sign, and can be exactly 0.

    Examples
    --------
    >>> from smartcpd import mirrors
    >>> mirrors.get("quadratic").move(2.0, 0.5, (0.0, 0.0))
    1.5
    """

    name = "quadratic"
    dual_ends = False
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
