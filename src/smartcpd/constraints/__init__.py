"""Constraints and penalties on a factor, one a file.

`get` turns a name such as ``"simplex"`` or ``"box(0, 1)"`` into a constraint, `names` lists the
names, and the classes themselves are attributes of this module (``constraints.Box``).
"""

from smartcpd._common.registry import Registry
from smartcpd.constraints.base import Constraint

registry = Registry("constraint", Constraint, __name__)
get, names, __getattr__ = registry.get, registry.names, registry.__getattr__

__all__ = ["Constraint", "get", "names", "registry"]
