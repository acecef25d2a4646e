"""Constraints and penalties on a factor, one a file.

`get` turns a name such as ``"simplex"`` or ``"box(0, 1)"``, or a sum of penalties such as
``"ridge(0.1) + sparsity(0.01)"``, into a constraint, `names` lists the names, `box` makes bounds of
numbers or arrays, and the classes themselves are attributes of this module (``constraints.Box``).
"""

from typing import Any

import numpy as np

from smartcpd._common.registry import Registry
from smartcpd.constraints.added import Added, split_sum
from smartcpd.constraints.base import Constraint
from smartcpd.constraints.box import Box
from smartcpd.constraints.entry_bounds import EntryBounds

registry = Registry("constraint", Constraint, __name__)
names, __getattr__ = registry.names, registry.__getattr__


def get(piece: str | Constraint) -> Constraint:
    """Return the constraint that a name, or a sum of names, stands for.

    Parameters
    ----------
    piece : str or Constraint
        A name such as ``"simplex"``, one with parameters such as ``"box(0, 1)"``, a sum such as
        ``"smoothness(0.1) + nonnegative"``, or a constraint, which is returned as it is.

    Returns
    -------
    Constraint

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("box(0, 1)")
    Box(lo=0, hi=1)
    >>> print(constraints.get("ridge(0.1)+sparsity(0.01)"))
    ridge(0.1) + sparsity(0.01)
    """
    parts = split_sum(piece) if isinstance(piece, str) else []
    if len(parts) < 2:
        return registry.get(piece)
    return Added(tuple(registry.get(part) for part in parts))


def box(lo: Any = 0.0, hi: Any = np.inf) -> Constraint:
    """Return bounds on the entries of a factor: the same for all, or one for each.

    Parameters
    ----------
    lo, hi : float or array
        Arrays have the shape of the factor (rows x components), or broadcast to it. An entry whose
        two bounds are equal is known: fits leave it alone, and intervals take it as certain.

    Returns
    -------
    Constraint

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import constraints
    >>> high = np.full((3, 2), np.inf)
    >>> high[0, 1] = 0.0
    >>> print(constraints.box(0.0, high))
    bounds on 6 entries, 1 of them known
    """
    if np.ndim(lo) == 0 and np.ndim(hi) == 0:
        return Box(lo, hi)
    return EntryBounds(lo, hi)


__all__ = ["Added", "Constraint", "EntryBounds", "box", "get", "names", "registry"]
