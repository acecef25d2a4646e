"""Whether several starts of one fit found the same components, and how surely."""

from smartcpd.consensus.build import build
from smartcpd.consensus.result import Component, Consensus
from smartcpd.consensus.stability import Stability

__all__ = ["Component", "Consensus", "Stability", "build"]
