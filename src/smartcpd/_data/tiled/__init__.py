"""Dense data larger than memory: an array of which blocks are read, a few at a time."""

from smartcpd._data.tiled.opening import loaded_if_small, opened
from smartcpd._data.tiled.storage import TiledArray

__all__ = ["TiledArray", "loaded_if_small", "opened"]
