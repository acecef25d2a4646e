"""Samplers: which part of the data an iteration reads, one sampler a file.

`get` turns a name such as ``"uniform"`` or ``"nonzeros(1000)"`` into a sampler, `names` lists the
names, and the classes themselves are attributes of this module (``sampling.Uniform``).
"""

from smartcpd._common.registry import Registry
from smartcpd.sampling.base import Draws, Sampler

registry = Registry("sampler", Sampler, __name__)
get, names, __getattr__ = registry.get, registry.names, registry.__getattr__

__all__ = ["Draws", "Sampler", "get", "names", "registry"]
