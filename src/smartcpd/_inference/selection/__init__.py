"""The choice of a rank and a loss, by how well fits predict cells that they did not see."""

from smartcpd._inference.selection.cross_validation import CrossValidation, cross_validate
from smartcpd._inference.selection.result import Row, Selection
from smartcpd._inference.selection.selecting import select

__all__ = ["CrossValidation", "Row", "Selection", "cross_validate", "select"]
