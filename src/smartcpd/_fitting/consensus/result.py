"""The consensus of several starts: their components, and how surely each was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._data.labels import Mode
from smartcpd._fitting.consensus.stability import Stability
from smartcpd._fitting.model import CPModel
from smartcpd.errors import InvalidParameterError

MOST_OTHERS = 10
"""Number of components outside of the model that are printed."""
LABEL = 24


class Component(NamedTuple):
    """A component that one or more starts found.

    Attributes
    ----------
    column : int or None
        Its column in the fitted model; None if only other starts found it.
    stability : float
        Between 0 and 1: how similar the component is in the other starts, 0 where it is missing,
        averaged with more weight for starts of a lower loss. A start whose loss is above the
        lowest by what noise alone moves a loss counts half of the best.
    found : int
        In how many starts it was found.
    similarity : float
        The mean congruence with those that were found again: the product over the modes of the
        cosines of the columns; NaN if there are none.
    """

    column: int | None
    stability: float
    found: int
    similarity: float


@dataclass(frozen=True, eq=False)
class Consensus:
    """The components of several starts, matched, with how surely each was found.

    Attributes
    ----------
    components : tuple of Component
        Those of the fitted model in their order, then those that only other starts found, the most
        stable first.
    model : CPModel
        Each component averaged over the starts that found it, in the same order: what they have
        in common, not a fit of its own.
    losses : tuple of float
        The losses of the starts that are counted, lowest first; penalties included.
    n_stopped : int
        Starts that were stopped early. They are not counted: what they had not found yet, they
        might have found.
    settled : bool
        Whether the others converged; if not, they might have become more alike.
    resolution : float
        How far noise alone moves the loss, the unit that differences of losses are judged by.
    differing : int
        Components of the fitted model that the next best start has not found.
    gap : float
        How far the loss of that start is above that of the fitted model; below 0 where a start of
        a higher loss was kept because it is more probable by far.

    Examples
    --------
    >>> from smartcpd import SmartCPD, datasets
    >>> X, _ = datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> est = SmartCPD(1, "poisson", n_init=2, consensus=True, random_state=0).fit(X)
    >>> est.consensus_.agree, est.consensus_.n_starts
    (True, 2)
    >>> est.consensus_.stable(least=0.9)
    CPModel(shape=10x9x8, rank=1, loss=poisson)
    >>> est.consensus_.plot().get_ylabel()
    'stability'
    """

    components: tuple[Component, ...]
    model: CPModel
    losses: tuple[float, ...]
    n_stopped: int
    settled: bool
    resolution: float
    differing: int
    gap: float

    @property
    def n_starts(self) -> int:
        """Number of starts that came to their end."""
        return len(self.losses)

    @property
    def rank(self) -> int:
        """Number of components of the fitted model."""
        return sum(c.column is not None for c in self.components)

    @property
    def stability(self) -> np.ndarray:
        """The stability of each component of the fitted model, in their order."""
        return np.array([c.stability for c in self.components[: self.rank]])

    @property
    def agree(self) -> bool:
        """Whether the best two starts found the same components."""
        return self.differing == 0

    @property
    def summary(self) -> Stability:
        """The figures of the fitted model's components as plain numbers."""
        own = self.components[: self.rank]
        return Stability(
            tuple(c.stability for c in own),
            tuple(c.found for c in own),
            self.n_starts,
            self.n_stopped,
        )

    @property
    def warning(self) -> str:
        """A sentence if the best two starts disagree, else an empty text."""
        if self.agree:
            return ""
        words = (
            f"The best two of {self.n_starts} starts disagree in {self.differing} of {self.rank} "
            f"components, and their losses are {abs(self.gap):.3g} apart"
        )
        if not self.settled:
            return f"{words}; not all had converged, so let them run longer before judging."
        if self.gap <= self.resolution:
            return (
                f"{words}, less than noise alone moves them ({self.resolution:.2g}): the data does "
                "not decide between the two. Trust what is stable, or use a lower rank."
            )
        times = self.gap / self.resolution if self.resolution > 0 else np.inf
        much = f"{times:.2g} times what" if times < 1e4 else "far more than"
        return (
            f"{words}, {much} noise alone moves them: the best was found only once, and a better "
            "one may exist. Use more starts."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the stability of the components; see `smartcpd.plots.plot_consensus`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_consensus(self, ax)

    def stable(self, least: float = 0.8) -> CPModel:
        """Return the averaged components that are stable, whether the fitted model has them or not.

        Parameters
        ----------
        least : float
            The stability, between 0 and 1.

        Returns
        -------
        CPModel

        Raises
        ------
        InvalidParameterError
            If there are none.
        """
        chosen = [r for r, c in enumerate(self.components) if c.stability >= least]
        if not chosen:
            most = max(c.stability for c in self.components)
            raise InvalidParameterError(
                f"No component has a stability of at least {least!r}; the largest is {most:.3g}. "
                "Ask for less."
            )
        model = self.model
        factors = [A[:, chosen] for A in model.factors]
        return replace(model, factors=factors, weights=model.weights[chosen])

    def __repr__(self) -> str:
        return (
            f"Consensus({self.n_starts} starts, {self.rank} components, stability "
            f"{self.stability.min():.2f} to {self.stability.max():.2f})"
        )

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

    def __str__(self) -> str:
        lines = [self._heading(), *self._table(range(self.rank))]
        others = range(self.rank, len(self.components))
        if others:
            lines += ["Found by other starts only:", *self._table(others[:MOST_OTHERS])]
            if len(others) > MOST_OTHERS:
                lines.append(f"... and {len(others) - MOST_OTHERS} more")
        ending = self.warning or "The best two starts found the same components."
        return "\n".join([*lines, ending])

    def _heading(self) -> str:
        low, high = self.losses[0], self.losses[-1]
        words = f"{self.n_starts} starts came to their end, with losses {low:.6g} to {high:.6g}"
        if self.n_stopped:
            verb = "was" if self.n_stopped == 1 else "were"
            words += f"; {self.n_stopped} {verb} stopped early and not counted"
        return words + "."

    def _table(self, rows: range) -> list[str]:
        lines = ["component  stability  found in  similarity  about"]
        for r in rows:
            c = self.components[r]
            name = "-" if c.column is None else str(c.column + 1)
            count = f"{c.found} of {self.n_starts}"
            alike = "-" if np.isnan(c.similarity) else f"{c.similarity:.3f}"
            about = self._about(r)
            lines.append(f"{name:>9}  {c.stability:>9.2f}  {count:>8}  {alike:>10}  {about}")
        if self.model.modes is None:
            return [line[: line.rindex("  ")] for line in lines]
        return lines

    def _about(self, r: int) -> str:
        """Name the row of each mode that a component speaks of most."""
        if self.model.modes is None:
            return ""
        names = []
        for mode, A in zip(self.model.modes, self.model.factors, strict=True):
            row = int(np.abs(A[:, r]).argmax())
            text = Mode(mode.name, mode.labels[row : row + 1], mode.kind).text()[0]
            names.append(text if len(text) <= LABEL else text[: LABEL - 1] + "…")
        return ", ".join(names)
