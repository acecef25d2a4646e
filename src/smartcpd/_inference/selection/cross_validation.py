"""`cross_validate` measures how well a rank and a loss predict cells that the fit did not see."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from smartcpd._common.parameters import checked_jobs
from smartcpd._data.labelled import taken_off
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import InMemory, Storage
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.settings import generator
from smartcpd._inference.selection.candidates import Candidate, as_candidate
from smartcpd._inference.selection.folds import make_folds
from smartcpd._inference.selection.scores import FoldScore, Mean, difference, summed
from smartcpd._inference.selection.trials import Trials, checked_parameters
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss

PROBLEM = ("mirror", "constraint", "step", "sampler")
"""Parameters of a fit that are checked with the data."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Scores of a rank and a loss on held-out cells.

    Attributes
    ----------
    rank : int
        Number of components.
    loss : str
        The loss as it was asked for.
    deviance, deviance_error : float
        Mean deviance of a held-out cell, and its standard error: twice by how much the loss exceeds
        that of a model that repeats the data. Lower is better. It compares ranks under one loss.
    log_likelihood, log_likelihood_error : float
        Mean log-likelihood of a held-out cell, on the scale of the data. Higher is better. It
        compares losses as well. NaN for losses that name no distribution for values like these.
    folds : list of dict
        The figures of each fold: ``cells``, ``deviance``, ``log_likelihood``, ``dispersion``,
        ``converged``, ``seconds``.
    models : list of CPModel
        The model of each fold.
    scores : list of FoldScore
        All that the above is worked out from, fold by fold.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> found = smartcpd.cross_validate(X, 1, "poisson", cv=2, random_state=0)
    >>> len(found.models)
    2
    >>> found.compare(found).value
    0.0
    """

    rank: int
    loss: str
    scores: list[FoldScore] = field(repr=False)

    @property
    def deviance(self) -> float:
        """The mean deviance of a held-out cell."""
        return self._mean("deviance").value

    @property
    def deviance_error(self) -> float:
        """The standard error of the mean deviance."""
        return self._mean("deviance").error

    @property
    def log_likelihood(self) -> float:
        """The mean log-likelihood of a held-out cell."""
        return self._mean("log_likelihood").value

    @property
    def log_likelihood_error(self) -> float:
        """The standard error of the mean log-likelihood."""
        return self._mean("log_likelihood").error

    @property
    def models(self) -> list[CPModel]:
        """The model of each fold."""
        return [score.model for score in self.scores]

    @property
    def folds(self) -> list[dict[str, Any]]:
        """The figures of each fold."""
        return [
            {
                "cells": score.fold.n_cells,
                "deviance": summed([score], "deviance").value,
                "log_likelihood": summed([score], "log_likelihood").value,
                "dispersion": score.dispersion,
                "converged": score.fit.converged,
                "seconds": score.fit.seconds,
            }
            for score in self.scores
        ]

    def compare(self, other: CrossValidation) -> Mean:
        """Return by how much this predicts better than another, on the same held-out cells.

        It is the log-likelihood of a cell, or for losses without one minus half of its deviance,
        minus the other's: above 0 if this is better. What makes a cell hard to predict for one
        makes it hard for the other, so that the standard error of the difference is far below those
        of the scores. Both need the same data, ``cv``, ``holdout`` and ``random_state``.

        Parameters
        ----------
        other : CrossValidation
            The scores of another rank or loss.

        Returns
        -------
        Mean
            ``value`` and ``error``.
        """
        pairs = list(zip(self.scores, other.scores, strict=False))
        same = len(self.scores) == len(other.scores) and all(
            np.array_equal(a.fold.x, b.fold.x)
            and all(map(np.array_equal, a.fold.places, b.fold.places))
            for a, b in pairs
        )
        if not same:
            raise IncompatibleError(
                "Only scores of the same held-out cells have a paired difference. Use the same X, "
                "cv, holdout and random_state (a number) for both."
            )
        if any((a.log_likelihood is None) != (b.log_likelihood is None) for a, b in pairs):
            raise IncompatibleError(
                f"One of '{self.loss}' and '{other.loss}' gives these values no probability, so "
                "the two cannot be compared."
            )
        return difference(dict(enumerate(self.scores)), dict(enumerate(other.scores)))

    def __str__(self) -> str:
        text = f"rank {self.rank}, loss {self.loss}, {len(self.scores)} folds: held-out deviance "
        text += f"{self.deviance:.5g} ± {self.deviance_error:.2g} a cell"
        if np.isfinite(self.log_likelihood):
            error = self.log_likelihood_error
            text += f", log-likelihood {self.log_likelihood:.5g} ± {error:.2g} a cell"
        return text

    def _mean(self, name: str) -> Mean:
        return summed(self.scores, name)


def cross_validate(
    X: Any,
    rank: int,
    loss: Loss | str = "auto",
    cv: int = 5,
    *,
    holdout: str = "cells",
    fiber_mode: int | str = 0,
    n_jobs: int = -1,
    random_state: Any = None,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
    **parameters: Any,
) -> CrossValidation:
    """Fit without some cells, and see how well the fits predict them.

    Parameters
    ----------
    X : a tensor, as `SmartCPD` takes it
        Of a sparse tensor whose other cells are zeros, nonzeros and zeros are held out alike: each
        fold its share of the nonzeros and a sample of the zeros, weighted so that the score is
        about all cells. If the other cells are unobserved, stored cells are held out.
    rank : int
        Number of components.
    loss : str or Loss
        "negative-binomial" without a number has its r estimated from the training cells.
    cv : int
        The number of folds.
    holdout : {"cells", "fibers"}
        Whether single cells are held out or whole fibers, the rows along ``fiber_mode``: prefer
        fibers where neighbouring cells of that mode say the same, such as hours of a day.
    fiber_mode : int or str
        The mode along which the fibers run, by its number or its name.
    n_jobs : int
        Fits that run at the same time, -1 for as many as there are cores. The result does not
        depend on it.
    random_state : int, Generator or None
        Decides about the folds and the fits. With the same number, the folds are the same for
        every rank and loss.
    absent, mask, weights
        As for `SmartCPD.fit`. Missing cells are never held out.
    **parameters
        Everything else that `SmartCPD` takes.

    Returns
    -------
    CrossValidation
        ``compare`` it with that of another rank or loss.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((20, 20, 20), rank=2, a_max=1.2, random_state=0)
    >>> two = smartcpd.cross_validate(X, 2, "poisson", cv=2, random_state=0)
    >>> one = smartcpd.cross_validate(X, 1, "poisson", cv=2, random_state=0)
    >>> gain = two.compare(one)
    >>> gain.value > gain.error
    True
    """
    trials, storage = opened(
        X,
        cv=cv,
        holdout=holdout,
        fiber_mode=fiber_mode,
        n_jobs=n_jobs,
        random_state=random_state,
        absent=absent,
        mask=mask,
        weights=weights,
        parameters=parameters,
    )
    candidate = as_candidate(loss, storage)
    check_problem(storage, rank, candidate, parameters)
    trials.candidates = [candidate]
    tasks = [partial(trials.score, candidate, int(rank), k) for k in range(int(cv))]
    return CrossValidation(int(rank), str(candidate), trials.side_by_side(tasks))


def opened(
    X: Any,
    *,
    cv: int,
    holdout: str,
    fiber_mode: int | str,
    n_jobs: int,
    random_state: Any,
    absent: str,
    mask: Any,
    weights: Any,
    parameters: dict[str, Any],
) -> tuple[Trials, InMemory]:
    """Return folds of the data and no fits yet, with everything checked that no loss decides."""
    jobs = checked_jobs(n_jobs)
    method = checked_parameters(parameters)
    rng = generator(random_state)
    tensor, modes = taken_off(X)
    storage = in_memory(as_storage(tensor, absent, mask, weights), "Cross-validation")
    named = {mode.name: number for number, mode in enumerate(modes or ())}
    folds = make_folds(storage, cv, holdout, named.get(str(fiber_mode), fiber_mode), rng)
    entropy = int(rng.integers(2**63))
    return Trials(folds, storage.n_observed, entropy, method, jobs), storage


def check_problem(
    storage: Storage, rank: int, candidate: Candidate, parameters: dict[str, Any]
) -> None:
    """Raise the errors of the first fit before any fit is made."""
    named = {name: parameters[name] for name in PROBLEM if name in parameters}
    Problem.build(storage, rank, candidate.typical, **named)
