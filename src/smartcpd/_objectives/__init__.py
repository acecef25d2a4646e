"""The objective: the mean loss over the observed cells, and its gradient, one storage a file."""

from smartcpd._objectives import blocks, dense, parts, sparse  # each registers its storage
from smartcpd._objectives.base import Estimate, Objective, objective_of

__all__ = ["Estimate", "Objective", "blocks", "dense", "objective_of", "parts", "sparse"]
