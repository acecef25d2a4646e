"""A dense tensor compressed to a small core, and least squares there: where good starts come from.

Least squares on a core costs next to nothing, so that several starts can run to their ends and be
compared; what they find is expanded to factors of the tensor.
"""

from smartcpd.core.als import Starts
from smartcpd.core.compression import Core, Scales
from smartcpd.core.expansion import expanded

__all__ = ["Core", "Scales", "Starts", "expanded"]
