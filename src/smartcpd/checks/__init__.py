"""What a file holds, before anything is fitted."""

from smartcpd.checks.table import check_table
from smartcpd.checks.tensor import check_tensor

__all__ = ["check_table", "check_tensor"]
