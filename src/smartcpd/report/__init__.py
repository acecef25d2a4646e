"""A fitted model as one page of HTML that needs nothing else."""

from smartcpd.report.write import write_report

__all__ = ["write_report"]
