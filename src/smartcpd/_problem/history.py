"""The history of a fit, a row an epoch, and a sentence about its end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._problem.checkpoints.values import kept_value


@kept_value
class Record(NamedTuple):
    """A row of the history.

    Attributes
    ----------
    time : float
        Seconds since the start of the fit, compilation excluded.
    epoch : int
        Epochs done; an epoch samples as many entries as the tensor has, or is a step of a solver
        that makes full passes.
    entries : int
        Entries sampled so far.
    loss : float
        Mean loss of the model of this row; of "smd" and "gcp-adam" on a fixed sample of fibers
        when the tensor is large.
    penalty : float
        What penalties such as sparsity add to it.
    phase : str
        The part of the fit that the row belongs to.
    error : float
        Standard error of the loss that comes from sampling the zeros of a large sparse tensor;
        0 where they are summed exactly.
    """

    time: float
    epoch: int
    entries: int
    loss: float
    penalty: float
    phase: str
    error: float = 0.0

    @property
    def objective(self) -> float:
        """Loss plus penalties, what the fit minimises."""
        return self.loss + self.penalty


@kept_value
class History(list[Record]):
    """The rows of a fit, in order; ``history["loss"]`` is a column as an array.

    Examples
    --------
    >>> from smartcpd import SmartCPD, datasets
    >>> X, _ = datasets.count((10, 9, 8), rank=1, random_state=0)
    >>> history = SmartCPD(1, "poisson", random_state=0).fit(X).history_
    >>> bool(history["loss"][-1] <= history["loss"][0])
    True
    >>> history.plot().get_xlabel()
    'seconds'
    """

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in Record._fields:
                raise KeyError(f"No column {key!r}; columns: {', '.join(Record._fields)}.")
            return np.array([getattr(record, key) for record in self])
        return super().__getitem__(key)

    @property
    def objective(self) -> np.ndarray:
        """Loss plus penalties, row by row."""
        return np.array([record.objective for record in self])

    @property
    def phases(self) -> list[str]:
        """The phases of the fit, in the order in which they began."""
        return list(dict.fromkeys(record.phase for record in self))

    def __repr__(self) -> str:
        if not len(self):
            return "History(no rows)"
        last, best = self[-1], float(np.nanmin(self.objective))
        return (
            f"History({len(self):,} rows, {last.time:.3g} s, {last.epoch:,} epochs, "
            f"loss {self[0].objective:.6g} to {best:.6g}; phases: {', '.join(self.phases)})"
        )

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss, phase by phase; see `smartcpd.plots.plot_history`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_history(self, ax)


@kept_value
class Finding(NamedTuple):
    """What the runs of a fit say together about the solution that was chosen."""

    sentence: str
    found: int
    """How many independent runs ended with it; 1 where those are too few to confirm it,
    0 where the solution was judged in another way."""


@kept_value
class Status(NamedTuple):
    """A status says whether a fit met its own criterion and, in a sentence, why it stopped.

    Attributes
    ----------
    converged : bool
        Whether the fit met its criterion, and not a limit.
    reason : str
        Why it stopped, what is known of the solution, and why the loss was chosen if it was.
    interrupted : bool
        Whether the user ended it.
    found : int
        How many independent runs of the fit ended with these components at this loss; with 1 the
        solution is not confirmed, 0 where nothing is known, as after a start of the user's.

    Examples
    --------
    >>> from smartcpd import SmartCPD, datasets
    >>> X, _ = datasets.count((10, 9, 8), rank=1, random_state=0)
    >>> SmartCPD(1, "poisson", random_state=0).fit(X).status_.converged
    True
    """

    converged: bool
    reason: str
    interrupted: bool = False
    found: int = 0

    def __str__(self) -> str:
        return self.reason
