"""How well a model describes data: figures that a report shows and a program can read."""

from smartcpd.quality.measure import measure
from smartcpd.quality.result import Bin, HotCell, HotSlice, Quality

__all__ = ["Bin", "HotCell", "HotSlice", "Quality", "measure"]
