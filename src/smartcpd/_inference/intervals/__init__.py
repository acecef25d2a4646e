"""Intervals for loadings, from the information in the data or from simulated data."""

from smartcpd._fitting.answers.intervals import Intervals
from smartcpd._inference.intervals.estimate import intervals

__all__ = ["Intervals", "intervals"]
