"""The objective: the mean loss over the observed cells, and its gradient, one storage a file."""

from smartcpd._objectives import dense, partitioned, sparse, tiled  # each registers its storage
from smartcpd._objectives.base import Estimate, Objective, objective_of, scaled_gradient

__all__ = [
    "Estimate",
    "Objective",
    "dense",
    "objective_of",
    "partitioned",
    "scaled_gradient",
    "sparse",
    "tiled",
]
