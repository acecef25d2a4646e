"""Losses: how bad a model value is for an observed one. One loss a file."""

from typing import Any

from smartcpd._common.registry import Registry
from smartcpd.losses.base import Data, Dispersion, Domain, Loss
from smartcpd.losses.custom import CustomLoss, custom

registry = Registry("loss", Loss, __name__)
get = registry.get
names = registry.names

__all__ = [
    "CustomLoss",
    "Data",
    "Dispersion",
    "Domain",
    "Loss",
    "custom",
    "get",
    "names",
    "registry",
]


def __getattr__(name: str) -> Any:
    """`losses.Poisson` and the like, without a list here that every new file must touch."""
    return getattr(registry, name)
