"""The methods of `CPModel` that take the exposure of its data into account, or leave it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from smartcpd._common.doors import doors

if TYPE_CHECKING:
    from smartcpd._data.exposure import Exposure


class HasExposure:
    """A model of rates, if its fit knew how much opportunity the cells had."""

    exposure: Exposure | None

    def with_exposure(self) -> Self:
        """Return the model of the data: rates times the exposure that they were fitted with.

        Returns
        -------
        CPModel
            This one itself if it was fitted without exposure.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SmartCPD
        >>> X, people = np.outer([2, 20], [1, 2, 3]), np.array([1.0, 10.0])
        >>> rates = SmartCPD(1, "poisson", random_state=0).fit(X, exposure={0: people}).model_
        >>> np.asarray(rates.with_exposure().full()).round(3)
        array([[ 2.,  4.,  6.],
               [20., 40., 60.]])
        """
        found: Self = doors.with_exposure(self)
        return found

    def without_exposure(self) -> Self:
        """Return the model of the rates alone, which knows nothing of the exposure.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SmartCPD
        >>> X, people = np.outer([2, 20], [1, 2, 3]), np.array([1.0, 10.0])
        >>> rates = SmartCPD(1, "poisson", random_state=0).fit(X, exposure={0: people}).model_
        >>> np.asarray(rates.without_exposure().full()).round(3)
        array([[2., 4., 6.],
               [2., 4., 6.]])
        """
        found: Self = doors.without_exposure(self)
        return found
