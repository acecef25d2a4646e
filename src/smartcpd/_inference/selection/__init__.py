"""Which rank, which loss: by how well cells are predicted that a fit did not see."""

from smartcpd._inference.selection.cross_validation import CrossValidation, cross_validate
from smartcpd._inference.selection.result import Row, Selection
from smartcpd._inference.selection.selecting import select

__all__ = ["CrossValidation", "Row", "Selection", "cross_validate", "select"]
