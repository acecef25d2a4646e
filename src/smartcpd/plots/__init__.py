"""Matplotlib figures of models and fits: axes in, axes out, labels from the model."""

from smartcpd.plots.comparison import plot_comparison
from smartcpd.plots.components import plot_component, plot_model, plot_scree
from smartcpd.plots.convergence import plot_history
from smartcpd.plots.intervals import plot_intervals
from smartcpd.plots.quality import plot_calibration, plot_residuals
from smartcpd.plots.relation import plot_relation
from smartcpd.plots.replication import plot_replication
from smartcpd.plots.selection import plot_selection
from smartcpd.plots.stability import plot_consensus

__all__ = [
    "plot_calibration",
    "plot_comparison",
    "plot_component",
    "plot_consensus",
    "plot_history",
    "plot_intervals",
    "plot_model",
    "plot_relation",
    "plot_replication",
    "plot_residuals",
    "plot_scree",
    "plot_selection",
]
