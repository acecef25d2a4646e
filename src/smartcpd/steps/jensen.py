"""Steps that minimise an upper bound of the sampled loss."""

from dataclasses import dataclass

from smartcpd.steps.base import Step


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
        return c / d, s
