"""Dense data larger than memory: an array of which blocks are read, a few at a time."""

from smartcpd._data.tiled.opening import opened, within_memory
from smartcpd._data.tiled.storage import TiledArray, TiledFitNeeds

__all__ = ["TiledArray", "TiledFitNeeds", "opened", "within_memory"]
