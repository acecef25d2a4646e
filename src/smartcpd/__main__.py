"""Run the command line by ``python -m smartcpd``."""

from smartcpd._app.cli import main

main()
