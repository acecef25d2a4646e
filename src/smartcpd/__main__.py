"""``python -m smartcpd``."""

from smartcpd.cli import main

main()
