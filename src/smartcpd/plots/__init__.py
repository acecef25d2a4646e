"""Matplotlib figures of models and fits: axes in, axes out, labels from the model."""

from smartcpd.plots.components import plot_component, plot_model, plot_scree
from smartcpd.plots.convergence import plot_history
from smartcpd.plots.relation import plot_relation
from smartcpd.plots.replication import plot_replication
from smartcpd.plots.selection import plot_selection

__all__ = [
    "plot_component",
    "plot_history",
    "plot_model",
    "plot_relation",
    "plot_replication",
    "plot_scree",
    "plot_selection",
]
