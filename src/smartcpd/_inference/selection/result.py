"""The result of `select`: the choice, the table behind it, and a sentence about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from smartcpd._common.doors import doors
from smartcpd._common.extras import required
from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.candidates import Candidate
from smartcpd._inference.selection.rule import Choice, Key, behind
from smartcpd._inference.selection.scores import Mean, mean_over, summed
from smartcpd._inference.selection.trials import Trials
from smartcpd._inference.selection.wording import recommendation, text_table
from smartcpd.losses import Loss


class Replication(NamedTuple):
    """Fits of one candidate to all of the data."""

    best: CPModel
    match: float | None
    """The mean factor match score of the other restarts with the best; None if there are none."""
    core_consistency: float | None


@dataclass(frozen=True)
class Row:
    """A candidate and its scores.

    Attributes
    ----------
    loss, rank
        The candidate.
    log_likelihood, deviance : float
        Means over held-out cells. Those of candidates that were scored on fewer folds than the best
        are the best's plus the difference on the folds of both, so that rows compare.
    behind, behind_error : float
        By how much the score is below the best one, and the standard error of that difference.
    folds : int
        On how many folds it was scored: all for the choice and the best, fewer where those were
        enough to rule it out, or where nothing hung on it.
    replicability : float or None
        Factor match score between restarts on all of the data: 1 if they find the same components.
    core_consistency : float or None
        In per cent, for dense data whose mean is a sum of components.
    seconds : float
        The time that its fits took.
    chosen : bool
        Whether it is the recommended one.
    """

    loss: str
    rank: int
    log_likelihood: float
    deviance: float
    behind: float
    behind_error: float
    folds: int
    replicability: float | None
    core_consistency: float | None
    seconds: float
    chosen: bool


@dataclass(frozen=True)
class PenaltyRow:
    """A penalty and its score on held-out cells, under the rank and loss that were chosen.

    Attributes
    ----------
    penalty : str
        What was given as ``constraint``.
    log_likelihood : float
        The mean over held-out cells; for losses without one, minus half of the deviance.
    behind, behind_error : float
        By how much it is below the best one's, and the standard error of that difference.
    chosen : bool
        Whether it is the recommended one.
    """

    penalty: str
    log_likelihood: float
    behind: float
    behind_error: float
    chosen: bool


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The rank and the loss that `select` recommends, and why.

    Attributes
    ----------
    rank : int
        Number of components.
    loss : Loss
        With parameters that were estimated from all of the data, such as r.
    model : CPModel
        The best of the restarts with this rank and loss, fitted to all of the data.
    recommendation : str
        One sentence.
    rows : tuple of Row
        What was tried, loss by loss; a rank that is not among them was not.
    table : list of dict
        The same as plain values.
    limit : int
        The highest rank that was allowed.
    left_out : tuple of str
        Losses that were not fitted, since nothing tells these data from those of a plainer one.
    cv, holdout
        How cells were held out.
    seconds : float
        The time that all fits took.
    penalty : str, Constraint, dict or None
        The best of ``penalties``, as it was given.
    penalty_rows : tuple of PenaltyRow
        What was tried of them.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> found = smartcpd.select(X, [1, 2], "poisson", cv=2, max_epochs=10, random_state=0)
    >>> found.rank, str(found.loss)
    (1, 'poisson')
    >>> found.to_frame()[["rank", "chosen"]].values.tolist()
    [[1, True], [2, False]]
    >>> found.plot().get_xlabel()
    'rank'
    """

    rank: int
    model: CPModel = field(repr=False)
    rows: tuple[Row, ...] = field(repr=False)
    limit: int
    left_out: tuple[str, ...]
    cv: int
    holdout: str
    seconds: float
    penalty: Any = None
    penalty_rows: tuple[PenaltyRow, ...] = field(default=(), repr=False)

    @property
    def loss(self) -> Loss:
        """The loss, with its estimated parameters."""
        assert self.model.loss_function is not None
        return self.model.loss_function

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows as plain values."""
        return [asdict(row) for row in self.rows]

    @property
    def recommendation(self) -> str:
        """One sentence about what to use, and how sure that is."""
        return recommendation(self)

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            A row for each candidate that was tried.
        """
        return required("pandas", "A selection as a DataFrame").DataFrame(self.table)

    def plot(self, ax: Any = None) -> Any:
        """Draw how far each rank is behind the best; see `smartcpd.plots.plot_selection`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_selection(self, ax)

    def __str__(self) -> str:
        text = f"{text_table(self)}\n\n{self.recommendation}"
        for row in self.penalty_rows:
            mark = "  <- chosen" if row.chosen else ""
            text += f"\npenalty {row.penalty}: log-likelihood {row.log_likelihood:.5g}{mark}"
        return text

    def __repr__(self) -> str:
        return f"Selection({self.loss}, rank {self.rank}; {len(self.rows)} tried)"

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)


def rows_of(
    trials: Trials,
    tried: Mapping[Candidate, list[int]],
    choice: Choice,
    again: Mapping[Key, Replication],
) -> tuple[Row, ...]:
    """Return a row for every candidate that was tried."""
    reference = trials.scores[choice.best]
    tops = {name: summed(reference.values(), name).value for name in ("log_likelihood", "deviance")}
    rows = []
    for candidate, ranks in tried.items():
        for rank in ranks:
            key = (candidate, rank)
            deficit = behind(trials, key, choice.best)
            found = again.get(key, Replication(CPModel([[[0.0]]]), None, None))
            rows.append(
                Row(
                    loss=str(candidate),
                    rank=rank,
                    log_likelihood=tops["log_likelihood"] - deficit.value,
                    deviance=tops["deviance"] + _more(trials, key, choice.best).value,
                    behind=deficit.value,
                    behind_error=deficit.error,
                    folds=len(trials.scores[key]),
                    replicability=found.match,
                    core_consistency=found.core_consistency,
                    seconds=sum(s.fit.seconds for s in trials.scores[key].values()),
                    chosen=key == choice.key,
                )
            )
    return tuple(rows)


def _more(trials: Trials, key: Key, other: Key) -> Mean:
    """Return by how much the deviance of one candidate exceeds that of another."""
    one, two = trials.scores[key], trials.scores[other]
    common = sorted(one.keys() & two.keys())
    parts = [one[k].deviance - two[k].deviance for k in common]
    return mean_over(parts, [one[k].fold for k in common]) if common else Mean(math.nan, math.nan)
