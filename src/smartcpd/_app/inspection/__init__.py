"""Facts about a file, before anything is fitted."""

from smartcpd._app.inspection.table import check_table
from smartcpd._app.inspection.tensor import check_tensor

__all__ = ["check_table", "check_tensor"]
