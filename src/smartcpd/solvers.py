"""What ``solver=`` may be: strategies and methods by name, and those with settings of their own.

A *strategy* goes from data to a model: it finds starts, runs methods from them and compares what
they found. A *method* improves one start: yours (``init=``), or a random one.
"""

from __future__ import annotations

from smartcpd._methods.base import Method
from smartcpd._methods.gcp_adam import GCPAdam
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.registry import METHODS, STRATEGIES, names

__all__ = ["METHODS", "STRATEGIES", "GCPAdam", "Method", "Strategy", "names"]
