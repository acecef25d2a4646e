"""A dense tensor compressed to a small core, and least squares there: where good starts come from.

Least squares on a core costs next to nothing, so that several starts can run to their ends and be
compared; what they find is expanded to factors of the tensor.
"""

from smartcpd._strategies.compression.als import Starts
from smartcpd._strategies.compression.compression import Core, Scales, is_linear
from smartcpd._strategies.compression.expansion import expanded
from smartcpd._strategies.compression.filling import Filling
from smartcpd._strategies.compression.joining import Joining
from smartcpd._strategies.compression.least_squares import least_squares_rows

__all__ = [
    "Core",
    "Filling",
    "Joining",
    "Scales",
    "Starts",
    "expanded",
    "is_linear",
    "least_squares_rows",
]
