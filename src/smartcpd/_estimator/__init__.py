"""The scikit-learn estimator."""

from smartcpd._estimator.estimator import SmartCPD

__all__ = ["SmartCPD"]
