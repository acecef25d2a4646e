"""The folder of a run: the model, what made it, its factors as tables, a page to read."""

from smartcpd._app.run_folder.folder import RunFolder
from smartcpd._app.run_folder.run import Run

__all__ = ["Run", "RunFolder"]
