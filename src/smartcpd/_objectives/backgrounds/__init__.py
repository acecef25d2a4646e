"""Backgrounds: the loss of a tensor of zeros, which every sparse tensor is but for its nonzeros.

A background is the sum of l(0, m) over all cells, and its gradient, without visiting the cells
where that can be avoided. Each file has one way to compute it.
"""

from smartcpd._objectives.backgrounds.base import Background
from smartcpd._objectives.backgrounds.choice import choose
from smartcpd._objectives.backgrounds.closed_form import ClosedForm
from smartcpd._objectives.backgrounds.exhaustive import Exhaustive
from smartcpd._objectives.backgrounds.hot_cells import HotCells
from smartcpd._objectives.backgrounds.sampled import Sampled

__all__ = ["Background", "ClosedForm", "Exhaustive", "HotCells", "Sampled", "choose"]
