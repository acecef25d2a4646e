"""A descent on one tile, from where the model is, in this process or another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._data.storage import Dense
from smartcpd._data.tiled.tiles import RowsByMode
from smartcpd._methods.base import Settings
from smartcpd._methods.descents import Descents
from smartcpd._methods.growing_samples import SAMPLED
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.problem import Problem

UNLIMITED = 1 << 30


@dataclass(frozen=True)
class TileTask:
    """A descent that is to be made, on whichever machine."""

    rows: RowsByMode
    before: np.ndarray
    """The stacked factors of these rows."""
    n_cells: float
    """About how many cells the fibers have together."""
    seed: int
    elapsed: float
    """Seconds that the fit has taken so far."""


@dataclass(frozen=True)
class Found:
    """The rows of a tile after a descent on it."""

    A: np.ndarray
    """The stacked factors, each component's scale shared among modes as it was before."""
    seen: np.ndarray
    """The weight of the cells of each row that were used."""
    weight: float
    """The weight of all cells that were used."""
    loss_before: float
    """The mean loss of the model that the descent began with."""
    entries: int
    """Number of entries that were read, counting repeated reads."""


def descended(problem: Problem, settings: Settings, task: TileTask) -> Found | None:
    """Descend on random fibers of a tile, which is the storage of the problem; return None if
    nothing of it was observed.
    """
    tile = problem.stored_as(Dense)
    if not tile.n_observed:
        return None
    rng = np.random.default_rng(task.seed)
    descents = descents_on(problem, settings, task.before, rng)
    descents.tracker.elapsed = task.elapsed
    descents.objective = descents.objective.sampled(task.n_cells, rng)
    loss_before = descents.objective.estimate(task.before).loss
    found = descents.run(task.before, "tile", SAMPLED)
    pairs = zip(tile.row_weights, tile.shape, strict=True)
    used = descents.objective.n_cells
    return Found(
        _aligned(found.A, task.before, tile.shape),
        np.concatenate([w * (used / size) for w, size in pairs]),
        float(descents.objective.divisor),
        loss_before,
        descents.tracker.entries,
    )


def descents_on(
    problem: Problem, settings: Settings, A: np.ndarray, rng: np.random.Generator
) -> Descents:
    """Descents on a tile, of which only the time is the user's to limit."""
    stopping = replace(settings.stopping, kkt_tol=0.0, max_epochs=UNLIMITED)
    settings = replace(settings, stopping=stopping, journal=Journal())
    tracker = Tracker(problem, settings, lambda _: None, rng)
    tracker.begin_with(A)
    return Descents(problem, settings, tracker, rng)


def _aligned(found: np.ndarray, before: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the same model, each component's scale shared among modes in the ratios of before.

    A tile leaves it open how its rows share the scale of a component; rows of different tiles would
    come to differ in that.
    """
    growth = np.array(
        [
            np.abs(F * B).sum(axis=0) / np.maximum((B * B).sum(axis=0), 1e-300)
            for F, B in zip(parts(found, shape), parts(before, shape), strict=True)
        ]
    )
    growth[:, ~(growth > 0).all(axis=0)] = 1.0
    common = np.exp(np.log(growth).mean(axis=0))
    out = found.copy()
    for F, g in zip(parts(out, shape), growth, strict=True):
        F *= common / g
    return out
