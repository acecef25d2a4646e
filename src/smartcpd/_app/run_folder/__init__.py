"""The folder of a run: the model, what made it, its factors as tables, a page to read."""

from smartcpd._app.run_folder.folder import RunFolder
from smartcpd._app.run_folder.record import RunRecord

__all__ = ["RunFolder", "RunRecord"]
