"""``smartcpd paper``."""

from __future__ import annotations


def paper() -> None:
    """Run the experiments of the paper."""
