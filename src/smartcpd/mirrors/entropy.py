"""phi(a) = a log a: the mirror step is a multiplication."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import exp, log
from smartcpd.mirrors.base import TINY, Mirror

LOG_MAX_GROWTH = 23.0
"""The log of the most one step may multiply an entry by. It is more than other maps allow: a gain
common to a column must survive until a simplex undoes it.
"""
EXP_RANGE = 80.0


@dataclass(frozen=True)
class Entropy(Mirror):
    """The map phi(a) = a log a, with derivative 1 + log a, for nonnegative factors.

    Its steps are those of the exponentiated gradient.

    Examples
    --------
    >>> from smartcpd import mirrors
    >>> round(mirrors.get("entropy").move(2.0, 0.5, (0.0, 0.0)), 4)
    1.2131
    """

    name = "entropy"

    @property
    def max_growth(self):
        return math.exp(LOG_MAX_GROWTH)

    @staticmethod
    def potential(a, p):
        return a * np.log(np.maximum(a, TINY))

    @staticmethod
    def to_dual(a, p):
        return 1.0 + log(max(a, TINY))

    @staticmethod
    def to_primal(z, p):
        return exp(min(z - 1.0, EXP_RANGE))

    @staticmethod
    def move(a, v, p):
        return a * exp(-min(max(v, -LOG_MAX_GROWTH), EXP_RANGE))
