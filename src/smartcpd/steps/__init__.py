"""Step rules: how far a step goes, one rule a file.

`get` turns a name such as ``"adagrad"`` or ``"constant(0.1)"`` into a rule, `names` lists the
names, and the classes themselves are attributes of this module (``steps.Adagrad``).
"""

from smartcpd._common.registry import Registry
from smartcpd.steps.base import Probe, Step

registry = Registry("step", Step, __name__)
get, names, __getattr__ = registry.get, registry.names, registry.__getattr__

__all__ = ["Probe", "Step", "get", "names", "registry"]
