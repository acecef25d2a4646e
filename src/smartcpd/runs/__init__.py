"""A fit as a folder: the model, what made it, its factors as tables, a page to read."""

from smartcpd.runs.folder import RunFolder
from smartcpd.runs.run import Run

__all__ = ["Run", "RunFolder"]
