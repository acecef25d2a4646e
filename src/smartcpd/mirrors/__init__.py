"""Mirror maps: the geometry in which a step is taken, one map a file.

`get` turns a name such as ``"entropy"`` or ``"power(3)"`` into a map, `names` lists the names, and
the classes themselves are attributes of this module (``mirrors.Entropy``).
"""

from smartcpd._common.registry import Registry
from smartcpd.mirrors.base import Mirror

registry = Registry("mirror", Mirror, __name__)
get, names, __getattr__ = registry.get, registry.names, registry.__getattr__

__all__ = ["Mirror", "get", "names", "registry"]
