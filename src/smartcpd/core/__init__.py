"""A dense tensor compressed to a small core, and least squares there: where good starts come from.

Least squares on a core costs next to nothing, so that several starts can run to their ends and be
compared; what they find is expanded to factors of the tensor.
"""

from smartcpd.core.als import Starts
from smartcpd.core.compression import Core, Scales, is_linear
from smartcpd.core.expansion import expanded
from smartcpd.core.filling import Filling
from smartcpd.core.rows import least_squares_rows

__all__ = ["Core", "Filling", "Scales", "Starts", "expanded", "is_linear", "least_squares_rows"]
