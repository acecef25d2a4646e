"""Intervals for loadings, from the information in the data or from simulated data."""

from smartcpd._inference.intervals.estimate import intervals
from smartcpd._inference.intervals.result import Intervals

__all__ = ["Intervals", "intervals"]
