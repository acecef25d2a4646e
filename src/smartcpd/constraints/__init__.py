"""Constraints and penalties on a factor. One a file."""

from typing import Any

from smartcpd._common.registry import Registry
from smartcpd.constraints.base import Constraint

registry = Registry("constraint", Constraint, __name__)
get = registry.get
names = registry.names

__all__ = ["Constraint", "get", "names", "registry"]


def __getattr__(name: str) -> Any:
    return getattr(registry, name)
