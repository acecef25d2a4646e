"""Sums for one factor at a time, the others fixed: its rows are then problems of their own.

What a row costs, and its derivatives, are sums over the cells of its slice (`sums`: one storage a
file). `newton` minimises them, `transform` does so for new slices, `growing` lets a mode grow.
"""

from smartcpd._objectives.slices import dense, sparse  # each registers its storage
from smartcpd._objectives.slices.sums import RowSums, Slices, slices_of

__all__ = ["RowSums", "Slices", "dense", "slices_of", "sparse"]
