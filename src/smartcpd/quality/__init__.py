"""Figures about how well a model describes data, for reports and programs."""

from smartcpd.quality.measure import measure
from smartcpd.quality.result import Bin, HotCell, HotSlice, Quality

__all__ = ["Bin", "HotCell", "HotSlice", "Quality", "measure"]
