"""The result of `CPModel.intervals`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._common.extras import required


@dataclass(frozen=True)
class Intervals:
    """An interval for every loading and every weight.

    Loadings are those of the normalised model: columns of unit length, their scale in the weights.
    Without such a convention a loading has no value of its own, since factors can be scaled against
    each other.

    Attributes
    ----------
    model : CPModel
        The normalised model that the intervals are about.
    lower, upper : list of (I_n x R) arrays
        The ends of the intervals of loadings.
    weights_lower, weights_upper : (R,) arrays
        The ends of the intervals of weights.
    level : float
        The share of intervals that should contain what they are about.
    method : str
        How they were found: "hessian", "conditional" or "bootstrap".
    dispersion : float
        The size of the noise that was assumed or estimated; 1 where the loss leaves nothing open.
    at_bound : list of (I_n x R) boolean arrays
        Loadings that the constraint holds at its bound. Their intervals are one-sided.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel
    >>> model = CPModel([np.ones((4, 1)), np.full((5, 1), 2.0)], loss_function="poisson")
    >>> found = model.intervals(np.tile([1, 2, 3, 2, 2], (4, 1)))
    >>> bool((found.lower[0] < found.model.factors[0]).all())
    True
    >>> all(inside.all() for inside in found.contains(model))
    True
    >>> found.to_frame().columns.tolist()
    ['mode', 'label', 'component', 'value', 'lower', 'upper', 'at_bound']
    >>> found.plot(component=0, mode=1).get_title("right")
    'component 1, 90% intervals'
    """

    model: Any
    """A `CPModel`, which names this class as what a method of its returns."""
    lower: list[np.ndarray]
    upper: list[np.ndarray]
    weights_lower: np.ndarray
    weights_upper: np.ndarray
    level: float
    method: str
    dispersion: float
    at_bound: list[np.ndarray]

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.model.shape))
        return (
            f"Intervals({self.level:.0%}, shape={shape}, rank={self.model.rank}, "
            f"method={self.method})"
        )

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

    def plot(self, component: int = 0, mode: int | str = 0, ax: Any = None) -> Any:
        """Draw loadings with their intervals; see `smartcpd.plots.plot_intervals`.

        Parameters
        ----------
        component : int
            Its place in the model, counted from 0.
        mode : int or str
            Number or name of the mode.
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_intervals(self, component, mode, ax)

    def contains(self, other: Any) -> list[np.ndarray]:
        """Say which loadings of another model lie in the intervals.

        The other model is normalised and aligned with this one first.

        Parameters
        ----------
        other : CPModel
            A model of the same shape and rank, such as a known truth.

        Returns
        -------
        list of (I_n x R) boolean arrays
        """
        aligned = other.normalize().align(self.model)
        triples = zip(aligned.factors, self.lower, self.upper, strict=True)
        return [(low <= A) & (high >= A) for A, low, high in triples]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row for each loading.

        Its columns are mode, label, component (counted from 1), value, lower, upper and at_bound.

        Returns
        -------
        pandas.DataFrame
        """
        pd = required("pandas", "Intervals as a DataFrame")
        parts = []
        rank = self.model.rank
        for n, mode in enumerate(self.model.named_modes):
            columns = {
                "value": self.model.factors[n],
                "lower": self.lower[n],
                "upper": self.upper[n],
                "at_bound": self.at_bound[n],
            }
            keys = {
                "mode": mode.name,
                "label": pd.Series(mode.labels.tolist() * rank, dtype=object),
                "component": np.repeat(np.arange(1, rank + 1), len(mode)),
            }
            values = {name: A.reshape(-1, order="F") for name, A in columns.items()}
            parts.append(pd.DataFrame(keys | values))
        return pd.concat(parts, ignore_index=True)
