"""Columns that never fall, or never rise."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.copying import copy
from smartcpd.constraints.isotonic import fit_increasing, workspace
from smartcpd.constraints.signs import EitherSign
from smartcpd.errors import InvalidParameterError


@dataclass(frozen=True)
class Monotone(EitherSign):
    """No column ever falls; or none ever rises, if ``decreasing``.

    Parameters
    ----------
    decreasing : bool
        The direction.
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("monotone").apply([[1.0], [4.0], [2.0]])
    array([[1.],
           [3.],
           [3.]])
    """

    decreasing: bool = False

    name = "monotone"
    cone = True
    columnwise = True

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.decreasing, bool):
            raise InvalidParameterError(
                f"monotone(decreasing) needs True or False; got {self.decreasing!r}."
            )

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        order = -1 if p[0] > 0.0 else 1
        floor = 0.0 if p[1] > 0.0 else -np.inf
        work, errors = workspace(Z), np.empty(Z.shape[0])
        z, gamma = np.empty(Z.shape[0], Z.dtype), np.empty(Z.shape[0], Z.dtype)
        for r in range(Z.shape[1]):
            copy(Z[::order, r], z)
            copy(Gamma[::order, r], gamma)
            fit_increasing(z, gamma, floor, work, errors)
            copy(z, Z[::order, r])
