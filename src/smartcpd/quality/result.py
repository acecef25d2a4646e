"""The figures about a fit as plain values, which go to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from smartcpd._common.doors import doors
from smartcpd.errors import InvalidDataError


@dataclass(frozen=True)
class Bin:
    """Cells of which the model predicts about the same: what it says, and what there was.

    Attributes
    ----------
    low, high : float
        Bounds of the predicted means.
    cells : float
        How many cells; estimated where zeros are sampled.
    predicted, observed : float
        Means over these cells.
    error : float
        Standard error of the observed mean, if the model were right: by the variance that the loss
        names, or by the residuals themselves where it names none.

    Examples
    --------
    >>> from smartcpd.quality import Bin
    >>> Bin(low=0.0, high=1.0, cells=84.0, predicted=0.4, observed=0.5, error=0.1).observed
    0.5
    """

    low: float
    high: float
    cells: float
    predicted: float
    observed: float
    error: float


@dataclass(frozen=True)
class HotCell:
    """A cell that the model describes badly.

    The residual is the root of the cell's deviance, with the sign of observed minus expected: about
    a standard normal number where the model is right and means are not tiny.

    Attributes
    ----------
    index : tuple of int
        The cell, counted from 0 in every mode.
    observed, expected : float
        What the cell holds, and what the model expects there.
    residual : float
        In standard deviations, about.

    Examples
    --------
    >>> from smartcpd.quality import HotCell
    >>> HotCell(index=(0, 2, 3), observed=9.0, expected=1.0, residual=4.9).index
    (0, 2, 3)
    """

    index: tuple[int, ...]
    observed: float
    expected: float
    residual: float


@dataclass(frozen=True)
class HotSlice:
    """A row of a mode whose cells the model describes worse than others.

    Attributes
    ----------
    mode, index : int
        The mode and its row, counted from 0.
    observed, expected : float
        The sum of the cells, and what the model expects of it.
    spread : float
        The sum of squared residuals over what the model's variances add up to, relative to the
        usual row of its mode: 2 means twice as scattered around the model as that. Where the loss
        names no variance, deviances take the place of squared residuals over variances.
    score : float
        How many standard deviations the spread is beyond 1.

    Examples
    --------
    >>> from smartcpd import CPModel, datasets
    >>> from smartcpd.quality import measure
    >>> X, factors = datasets.count((6, 5, 4), rank=1, random_state=0)
    >>> measure(CPModel(factors, loss_function="poisson"), X).hot_slices
    ()
    """

    mode: int
    index: int
    observed: float
    expected: float
    spread: float
    score: float


@dataclass(frozen=True, repr=False)
class Quality:
    """How well a model describes data.

    Attributes
    ----------
    loss : str
        The loss of the model.
    data : {"counts", "probabilities", "measurements"}
        What the figures are about.
    cells : int
        Observed cells.
    nonzeros : int
        Observed cells that are not zero.
    mean_loss, mean_loss_error : float
        The loss of the model, and its standard error where it comes from a sample.
    constant_loss : float
        The loss of the best model that is the same in every cell.
    saturated_loss : float
        The least loss that any model could have, one that repeats the data.
    deviance_explained : float or None
        1 - deviance of the model / deviance of the constant, 1 at most; None where the loss has no
        deviance for this data.
    deviance_attainable : float or None
        What this model would explain of data drawn from itself: noise keeps it below 1. For counts
        and probabilities.
    dispersion : float or None
        Pearson's chi-squared over its degrees of freedom, for counts: 1 where they vary as the loss
        says. The rarest cells weigh most in it.
    scatter : float or None
        The same comparison with every cell weighted by its variance: squared residuals over
        variances, each summed over all cells. It does not hang on cells where nearly nothing is
        expected.
    calibration : tuple of Bin
        In order of the predicted mean.
    hot_cells : tuple of HotCell
        The largest residuals, largest first.
    hot_slices : tuple of HotSlice
        The rows with the worst fit, worst first.
    sampled_cells : int
        How many cells were drawn where not all were read; 0 if all were.

    Examples
    --------
    >>> from smartcpd import CPModel, datasets
    >>> from smartcpd.quality import measure
    >>> X, factors = datasets.count((6, 5, 4), rank=1, random_state=0)
    >>> quality = measure(CPModel(factors, loss_function="poisson"), X)
    >>> quality.cells, quality.data
    (120, 'counts')
    >>> Quality.from_dict(quality.to_dict()) == quality
    True
    >>> quality.plot().get_xlabel(), quality.plot_residuals().get_ylabel()
    ('predicted mean', 'cell')
    """

    loss: str
    data: str
    cells: int
    nonzeros: int
    mean_loss: float
    mean_loss_error: float
    constant_loss: float
    saturated_loss: float
    deviance_explained: float | None
    deviance_attainable: float | None
    dispersion: float | None
    scatter: float | None
    calibration: tuple[Bin, ...]
    hot_cells: tuple[HotCell, ...]
    hot_slices: tuple[HotSlice, ...]
    sampled_cells: int = 0

    @property
    def sampled(self) -> bool:
        """Whether some of the figures come from a sample of the cells."""
        return self.sampled_cells > 0

    def __repr__(self) -> str:
        explained = self.deviance_explained
        share = "" if explained is None else f", {100 * explained:.3g} % of deviance explained"
        loss = f"loss {self.loss} {self.mean_loss:.6g}"
        return f"Quality({loss} of {self.cells:,} cells{share})"

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw whether predictions come true; see `smartcpd.plots.plot_calibration`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_calibration(self, ax)

    def plot_residuals(self, ax: Any = None) -> Any:
        """Draw the cells that are described worst; see `smartcpd.plots.plot_residuals`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_residuals(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as dicts, lists, numbers and text, which JSON can hold.

        Returns
        -------
        dict
        """
        out = asdict(self)
        for name in ("calibration", "hot_cells", "hot_slices"):
            out[name] = list(out[name])
        for cell in out["hot_cells"]:
            cell["index"] = list(cell["index"])
        return out

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Quality:
        """Read what `to_dict` gave; names that this version does not know are ignored.

        Parameters
        ----------
        given : mapping
            What `to_dict` gave, from JSON perhaps.

        Returns
        -------
        Quality

        Raises
        ------
        InvalidDataError
            If it is something else.
        """
        values = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        try:
            values["calibration"] = tuple(Bin(**b) for b in given["calibration"])
            values["hot_cells"] = tuple(
                HotCell(**{**cell, "index": tuple(cell["index"])}) for cell in given["hot_cells"]
            )
            values["hot_slices"] = tuple(HotSlice(**row) for row in given["hot_slices"])
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise InvalidDataError(
                f"These figures about a fit cannot be read: {error}. Measure them again."
            ) from None
