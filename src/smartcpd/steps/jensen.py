"""Steps that minimise an upper bound of the sampled loss."""

from dataclasses import dataclass

from smartcpd.steps.base import Step

FLOOR = 1e-9
LARGE = 1e4


@dataclass(frozen=True)
class Jensen(Step):
    """Gamma = H^T l̆' / phi'(A), with l̆ the loss's convex part: mini-batch multiplicative updates.

    The rule needs no tuning, but the loss's matched mirror map and nonnegative factors. It is weak
    on data with many zeros, where a batch may hold no event for a row.

    Examples
    --------
    >>> from smartcpd import steps
    >>> steps.get("jensen").needs_convex_part
    True
    """

    name = "jensen"
    needs_convex_part = True

    @staticmethod
    def gamma(g, c, d, s, k, p):
        # Where the model or the entry is 0, so is the bound's curvature; no entry may then grow by
        # more than a large factor, nor be unable to grow again.
        size = max(abs(d), FLOOR)
        curvature = c if d >= 0.0 else -c
        return max(curvature, -g / LARGE) / size, s
