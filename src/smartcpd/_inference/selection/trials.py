"""Fits of candidates to folds, side by side where they do not wait for each other.

They give the same bits however many run at a time.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._data.storage import Storage
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.settings import TOL
from smartcpd._inference.selection.candidates import Candidate
from smartcpd._inference.selection.folds import Fold
from smartcpd._inference.selection.scores import FoldScore, scored
from smartcpd._inference.selection.training import Fitted, fitted
from smartcpd.errors import IncompatibleError, InvalidParameterError

TRIAL: dict[str, Any] = {"tol": 10 * TOL, "effort": 0.0}
"""Defaults of fits that are only scored or compared. What they may still gain is far below what
noise does to the score; and as few searches are made as there may be, since a solution that is a
little better predicts no better.
"""
PATIENCE = 3
"""Number of ranks in a row at which a start from the rank below led nowhere, before the first fold
does without."""
NOT_FOR_TRIALS = ("checkpoint", "checkpoint_every", "resume")
Task = Callable[[], Any]


@dataclass(eq=False)
class Trials:
    """The fits so far, by candidate, rank and fold."""

    folds: list[Fold]
    n_observed: float
    """The number of observed cells, or the sum of their weights."""
    entropy: int
    """The seed from which every fit gets a stream of its own."""
    parameters: dict[str, Any]
    n_jobs: int
    tell: Callable[[str], Any] = lambda sentence: None
    """Called with a sentence about each fit that was scored."""
    scores: dict[tuple[Candidate, int], dict[int, FoldScore]] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    n_threads: int | None = None

    def score(self, candidate: Candidate, rank: int, k: int) -> FoldScore:
        """Return the score of a candidate on a fold, fitted if it was not yet."""
        known = self.scores.setdefault((candidate, rank), {})
        if k not in known:
            fold = self.folds[k]
            kin = self._kin(candidate, rank, k)
            previous, scratch = self._ways(candidate, rank, k)
            found = self.fit(fold.training, candidate, rank, k, previous, kin, scratch, **TRIAL)
            known[k] = scored(fold, found)
            self.tell(f"{candidate}, rank {rank}, fold {k + 1}: {found.seconds:.1f} s")
        return known[k]

    def _kin(self, candidate: Candidate, rank: int, k: int) -> CPModel | None:
        """Return a model of the fold to start from, where the parameter of a loss is estimated: of
        the rank above, whose components are merged, or of the plain relative.

        On the first fold all ranks start from the relative, which shows which of them are good.
        """
        plain = candidate.plain
        if plain is None:
            return None
        above = [r for c, r in self.scores if c == candidate and r > rank]
        above = [r for r in above if k in self.scores[candidate, r]]
        if k > 0 and above:
            return self.scores[candidate, min(above)][k].model
        return self.score(plain, rank, k).model if (plain, rank) in self.scores else None

    def _ways(self, candidate: Candidate, rank: int, k: int) -> tuple[Fitted | None, bool]:
        """Return the fit of a lower rank to start from, if any, and whether to start from scratch
        as well.

        The first fold tries both, until starts from below have failed time and again: on sparse
        counts a new component seldom finds its place beside others that have settled. Other folds
        go the way that led as low on the first.
        """
        own = {r: scores for (c, r), scores in self.scores.items() if c == candidate and r < rank}
        lower = sorted(r for r, scores in own.items() if k in scores)
        if not lower:
            return None, True
        if k == 0:
            recent = [own[r][0].fit.widens for r in lower[1:]][-PATIENCE:]
            useless = len(recent) == PATIENCE and not any(recent)
            return (None if useless else own[lower[-1]][0].fit), True
        first = self.scores[candidate, rank].get(0)
        widens = first is not None and first.fit.widens and lower[-1] == rank - 1
        return (own[lower[-1]][k].fit, False) if widens else (None, True)

    def fit(
        self,
        storage: Storage,
        candidate: Candidate,
        rank: int,
        key: int,
        previous: Fitted | None = None,
        kin: CPModel | None = None,
        scratch: bool = True,
        **usual: Any,
    ) -> Fitted:
        """Fit with a seed that depends on what is fitted alone, from ``scratch`` as well or from a
        lower rank alone; ``usual`` are defaults of its own.
        """
        seed = np.random.SeedSequence(
            self.entropy, spawn_key=(self.candidates.index(candidate), rank, key)
        )
        given = usual | self.parameters | {"callback": self._wants_to_stop}
        given["n_threads"] = self.n_threads or self.parameters.get("n_threads")
        found = fitted(storage, rank, candidate, seed, given, previous, kin, scratch)
        if found.interrupted or self.stop.is_set():
            raise KeyboardInterrupt
        return found

    def _wants_to_stop(self, report: Any) -> bool:
        return self.stop.is_set()

    def side_by_side(self, tasks: Sequence[Task]) -> list[Any]:
        """Return what tasks return, in their order; an interrupt ends those that run."""
        workers = min(self.n_jobs, len(tasks))
        if workers <= 1:
            return [task() for task in tasks]
        # Linear algebra is limited here, since its innermost limit holds for the whole process.
        self.n_threads = max(1, threads.resolve(self.parameters.get("n_threads")) // workers)
        try:
            with threads.limited_to(1), ThreadPoolExecutor(workers) as pool:
                futures = [pool.submit(task) for task in tasks]
                try:
                    wait(futures)
                except KeyboardInterrupt:
                    self.stop.set()
                    for future in futures:
                        future.cancel()
                    raise
                return [future.result() for future in futures]
        finally:
            self.n_threads = None


def checked_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the fits, all known and none that many fits cannot share."""
    known = set(inspect.signature(fit).parameters) - {"X", "rank", "loss"}
    for name in parameters:
        if name not in known:
            raise InvalidParameterError(
                f"{name!r} is no parameter of a fit. Those are: {', '.join(sorted(known))}."
            )
        if name == "exposure" and parameters[name] is not None:
            raise IncompatibleError(
                "exposure= does not go with many fits. An exposure of modes changes the rows of "
                "factors alone, so that the choice is the same without it: leave it out. With one "
                "of every cell, pass data = smartcpd.rates(X, exposure, loss) in place of X."
            )
        if name in NOT_FOR_TRIALS:
            raise IncompatibleError(
                f"{name}= is for one fit, and held-out evaluation makes many. Leave it out."
            )
    init = parameters.get("init", "random")
    if not isinstance(init, str):
        raise IncompatibleError(
            "init= with factors would start every fit from a model that may have seen the held-out "
            "cells. Use init='random', 'als' or 'smd'."
        )
    return {name: value for name, value in parameters.items() if name != "callback"}
