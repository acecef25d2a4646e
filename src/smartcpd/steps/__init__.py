"""Step rules: how far to go. One rule a file."""

from typing import Any

from smartcpd._common.registry import Registry
from smartcpd.steps.base import Probe, Step

registry = Registry("step", Step, __name__)
get = registry.get
names = registry.names

__all__ = ["Probe", "Step", "get", "names", "registry"]


def __getattr__(name: str) -> Any:
    return getattr(registry, name)
