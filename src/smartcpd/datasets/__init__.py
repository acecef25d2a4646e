"""Data to try things on."""

from smartcpd.datasets.planted import Planted, binary, count, gamma, gaussian, simplex

__all__ = ["Planted", "binary", "count", "gamma", "gaussian", "simplex"]
