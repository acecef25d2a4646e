"""Whether several starts of one fit found the same components, and how surely."""

from smartcpd._fitting.consensus.build import build
from smartcpd._fitting.consensus.result import Component, Consensus
from smartcpd._fitting.consensus.stability import Stability

__all__ = ["Component", "Consensus", "Stability", "build"]
