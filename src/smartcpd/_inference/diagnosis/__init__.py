"""Checks of what may be wrong with a fit, each with its figures and what to do about it."""

from smartcpd._fitting.answers.diagnosis import Diagnosis, Finding, Severity
from smartcpd._inference.diagnosis.examine import diagnose

__all__ = ["Diagnosis", "Finding", "Severity", "diagnose"]
