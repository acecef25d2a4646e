"""Losses: how bad a model value is for an observed one, one loss a file.

`get` turns a name such as ``"poisson"`` or ``"huber(1.5)"`` into a loss, `names` lists the names,
`custom` makes a loss of your own, and the classes themselves are attributes of this module
(``losses.Poisson``).
"""

from smartcpd._common.registry import Registry
from smartcpd.losses.base import Data, Dispersion, Domain, Loss
from smartcpd.losses.custom import CustomLoss, custom

registry = Registry("loss", Loss, __name__)
get, names, __getattr__ = registry.get, registry.names, registry.__getattr__

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
