"""The objective: the mean loss over the observed cells, and its gradient. One storage a file."""

from smartcpd._objectives.base import Estimate, Objective, mean_loss, objective_of

__all__ = ["Estimate", "Objective", "mean_loss", "objective_of"]
