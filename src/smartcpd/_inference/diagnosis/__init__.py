"""Checks of what may be wrong with a fit, each with its figures and what to do about it."""

from smartcpd._inference.diagnosis.examine import diagnose
from smartcpd._inference.diagnosis.result import Diagnosis, Finding, Severity

__all__ = ["Diagnosis", "Finding", "Severity", "diagnose"]
