"""The command line, a command a file."""

from smartcpd.cli.app import main

__all__ = ["main"]
