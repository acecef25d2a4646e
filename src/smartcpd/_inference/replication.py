"""Components that are found again in halves of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._common.parameters import check_integer
from smartcpd._data.labelled import taken_off
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage.parts import part_of
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.ranking import mode_number
from smartcpd._fitting.settings import generator
from smartcpd._inference.selection.trials import checked_parameters
from smartcpd.errors import InvalidDataError, InvalidParameterError, MissingExtraError

LEAST = 0.9
"""The similarity from which on two halves are said to have found the same component."""


@dataclass(frozen=True, eq=False)
class Replication:
    """How alike each component is in halves of the data that have no row in common.

    Attributes
    ----------
    model : CPModel
        The model of all data, whose components these are.
    mode : str
        The mode whose rows were split into halves.
    similarity : (splits x R) array
        For each split and component, the product of the cosines between the columns that the two
        halves found for it, over the modes that they share.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((16, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> found = smartcpd.replicate(X, 1, "poisson", halves=4, random_state=0)
    >>> found
    Replication(1 of 1 components found again in halves of mode 0, 2 splits)
    >>> found.found_again(least=0.8), found.to_frame().columns.tolist()
    (array([ True]), ['component', 'median', 'lowest', 'highest', 'found'])
    >>> found.plot().get_xlabel()
    'component'
    """

    model: CPModel
    mode: str
    similarity: np.ndarray

    @property
    def n_splits(self) -> int:
        """Number of splits into two halves."""
        return len(self.similarity)

    @property
    def median(self) -> np.ndarray:
        """The median similarity of each component."""
        return np.median(self.similarity, axis=0)

    def found_again(self, least: float = LEAST) -> np.ndarray:
        """Say for each component whether at least half of the splits found it in both halves.

        Parameters
        ----------
        least : float
            The similarity, between 0 and 1, that two halves must have.

        Returns
        -------
        (R,) boolean array
        """
        return self.median >= least

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row for each component.

        Its columns are component (counted from 1), median, lowest, highest, and found, the share
        of splits whose halves both have the component.

        Returns
        -------
        pandas.DataFrame
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "pandas", "A replication as a DataFrame") from None
        return pd.DataFrame(
            {
                "component": np.arange(1, self.model.rank + 1),
                "median": self.median,
                "lowest": self.similarity.min(axis=0),
                "highest": self.similarity.max(axis=0),
                "found": (self.similarity >= LEAST).mean(axis=0),
            }
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the similarities; see `smartcpd.plots.plot_replication`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
        """
        return doors.plot_replication(self, ax)

    def __repr__(self) -> str:
        return (
            f"Replication({self.found_again().sum()} of {self.model.rank} components found again "
            f"in halves of {self.mode}, {self.n_splits} splits)"
        )

    def __str__(self) -> str:
        lines = [
            f"{self.n_splits} splits of {self.mode} into halves that share no row.",
            "component  median  lowest  found in both halves",
        ]
        found = (self.similarity >= LEAST).sum(axis=0)
        pairs = zip(self.median, self.similarity.min(axis=0), found, strict=True)
        for number, (median, lowest, often) in enumerate(pairs, 1):
            count = f"{often} of {self.n_splits}"
            lines.append(f"{number:>9}  {median:>6.2f}  {lowest:>6.2f}  {count:>20}")
        return "\n".join(lines)


def replicate(
    X: Any,
    rank: int,
    loss: Any = "auto",
    *,
    mode: int | str = 0,
    halves: int = 20,
    model: CPModel | None = None,
    random_state: Any = None,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
    **parameters: Any,
) -> Replication:
    """Find out which components are found again in halves of the data.

    The rows of one mode (subjects, days, sites) are split at random into two halves, each half is
    fitted from scratch, and what the two found is compared on the other modes. Components that
    belong to a few rows only, or that a rank too high adds, are found in one half and not in the
    other.

    Parameters
    ----------
    X : a tensor
        As `SmartCPD` takes it; it must fit into memory.
    rank : int
        Number of components.
    loss : str or Loss
        As for `SmartCPD`.
    mode : int or str
        The mode whose rows are split, by number or name: one whose rows are a sample of many more,
        such as subjects.
    halves : int
        Number of halves that are fitted, an even number: two for each split.
    model : CPModel, optional
        The model of all data whose components are judged; fitted here by default.
    random_state : int, Generator or None
        The same seed gives the same bits.
    absent, mask, weights
        As for `SmartCPD.fit`.
    **parameters
        Everything else that `SmartCPD` takes.

    Returns
    -------
    Replication
        ``similarity``, ``median``, ``found_again``, ``to_frame`` and ``plot``; print it.

    See Also
    --------
    select : which rank predicts held-out cells best.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((16, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> bool(smartcpd.replicate(X, 1, "poisson", halves=4, random_state=0).found_again().all())
    True
    """
    check_integer("rank", rank, at_least=1)
    check_integer("halves", halves, at_least=2)
    if halves % 2:
        raise InvalidParameterError(f"halves come in pairs; got {halves!r}. Use {halves + 1}.")
    parameters = checked_parameters(parameters)
    model = None if model is None else model.with_exposure()
    tensor, modes = taken_off(X)
    storage = in_memory(as_storage(tensor, absent, mask, weights), "replicate")
    rng = generator(random_state)
    if model is None:
        model = fit(storage, rank, loss, random_state=rng.spawn(1)[0], **parameters).model
        model = CPModel(model.factors, model.weights, model.loss_function, modes)
    _check_model(model, storage.shape, rank)
    place = mode_number(model, mode)
    if storage.shape[place] < 4:
        raise InvalidDataError(
            f"{_called(model, place)} has {storage.shape[place]} rows, too few for halves. Split "
            "another mode."
        )
    splits = []
    for split in _splits(storage.shape[place], halves // 2, rng):
        found = [
            fit(
                part_of(storage, {place: rows}),
                rank,
                model.loss_function or loss,
                random_state=rng.spawn(1)[0],
                **parameters,
            ).model
            for rows in split
        ]
        splits.append(_similarity(model, found, place))
    return Replication(model, _called(model, place), np.array(splits))


def _called(model: CPModel, place: int) -> str:
    return f"mode {place}" if model.modes is None else model.modes[place].name


def _check_model(model: CPModel, shape: Sequence[int], rank: int) -> None:
    if model.shape != tuple(shape) or model.rank != rank:
        raise InvalidParameterError(
            f"model is {model!r}, but X has shape {'x'.join(map(str, shape))} and rank is {rank}. "
            "Give the model that was fitted to X, with its rank."
        )


def _splits(size: int, count: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Draw pairs of halves of so many rows."""
    for _ in range(count):
        drawn = rng.permutation(size)
        yield [np.sort(half) for half in np.split(drawn, [size // 2])]


def _similarity(model: CPModel, found: Sequence[CPModel], place: int) -> np.ndarray:
    """How alike two halves are in the component that each has for every component of the model."""
    matched = []
    for half in found:
        congruence = np.abs(_cosines(model, half, place)).prod(axis=0)
        rows, columns = best_pairs(congruence)
        matched.append(columns[np.argsort(rows)])
    between = np.abs(_cosines(found[0], found[1], place)).prod(axis=0)
    return np.minimum(between[matched[0], matched[1]], 1.0)


def _cosines(one: CPModel, other: CPModel, place: int) -> np.ndarray:
    """Cosines between columns in each mode but the one that was split."""
    shared = [n for n in range(one.order) if n != place]
    return mode_cosines([one.factors[n] for n in shared], [other.factors[n] for n in shared])
