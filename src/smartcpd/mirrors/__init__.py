"""Mirror maps: the geometry in which a step is taken. One map a file."""

from typing import Any

from smartcpd._common.registry import Registry
from smartcpd.mirrors.base import Mirror

registry = Registry("mirror", Mirror, __name__)
get = registry.get
names = registry.names

__all__ = ["Mirror", "get", "names", "registry"]


def __getattr__(name: str) -> Any:
    return getattr(registry, name)
