"""A page of HTML about a fitted model, one file that needs nothing else."""

from smartcpd.report.write import write_report

__all__ = ["write_report"]
