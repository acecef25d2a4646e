"""The command line, a command a file."""

from smartcpd._app.cli.app import main

__all__ = ["main"]
