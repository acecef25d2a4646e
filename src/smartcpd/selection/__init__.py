"""Which rank, which loss: by how well cells are predicted that a fit did not see."""

from smartcpd.selection.cross_validation import CrossValidation, cross_validate
from smartcpd.selection.result import Row, Selection
from smartcpd.selection.selecting import select

__all__ = ["CrossValidation", "Row", "Selection", "cross_validate", "select"]
