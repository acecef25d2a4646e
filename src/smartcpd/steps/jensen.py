"""Steps that minimise an upper bound of the sampled loss."""

from dataclasses import dataclass

from smartcpd.steps.base import Step

FLOOR = 1e-9


@dataclass(frozen=True)
class Jensen(Step):
    """Gamma = H^T l̆' / phi'(A), with l̆ the loss's convex part: mini-batch multiplicative updates.

    Needs no tuning, the loss's matched mirror map and nonnegative factors. Weak on data with many
    zeros, where a batch may hold no event for a row.
    """

    name = "jensen"
    needs_convex_part = True

    @staticmethod
    def gamma(g, c, d, s, k, p):
        # phi'(a) is 0 at a = 0 for the quadratic map, where an entry could never grow again.
        away_from_zero = max(d, FLOOR) if d >= 0.0 else min(d, -FLOOR)
        return c / away_from_zero, s
