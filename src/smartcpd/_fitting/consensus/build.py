"""Makes a consensus of the starts that came to their end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from smartcpd._fitting.consensus.matching import Cluster, average, clusters
from smartcpd._fitting.consensus.result import Component, Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._strategies.repair import flaws

TINY = 1e-300


def build(
    model: CPModel,
    objective: float,
    others: Sequence[tuple[CPModel, float]],
    *,
    own: bool = True,
    n_stopped: int = 0,
    settled: bool = True,
    resolution: float = 0.0,
) -> Consensus:
    """Match the components of a fitted model with those of other starts.

    Parameters
    ----------
    model : CPModel
        The fitted one.
    objective : float
        Its loss, with penalties.
    others : sequence of (CPModel, float)
        Other starts that came to their end, at least one, and theirs.
    own : bool
        Whether the model is of a single start, too, and counts as one.
    n_stopped : int
        Starts that did not come to their end.
    settled : bool
        Whether all others ended because there was nothing left to gain.
    resolution : float
        How far noise alone moves the loss.

    Returns
    -------
    Consensus
    """
    ranked = sorted(others, key=lambda start: start[1])
    models = [model, *(m for m, _ in ranked)]
    objectives = np.array([objective, *(loss for _, loss in ranked)])
    merit = _merit(objectives, resolution)
    if not own:
        merit[0] = 0.0
    live = [_live(m) for m in models]
    found = clusters(models, live)
    components = [_component(c, merit, own) for c in found]
    rest = sorted(
        range(model.rank, len(found)), key=lambda n: (-components[n].stability, n)
    )  # starts of the same stability are in the order of their losses
    order = [*range(model.rank), *rest]
    columns = [average(found[n], models, np.maximum(merit, TINY)) for n in order]
    factors = [np.stack(mode, axis=1) for mode in zip(*columns, strict=True)]
    return Consensus(
        tuple(components[n] for n in order),
        CPModel(factors, None, model.loss_function, model.modes),
        tuple(float(loss) for loss in objectives[0 if own else 1 :]),
        n_stopped,
        settled,
        resolution,
        sum(1 not in found[r].members for r in live[0]),
        float(objectives[1] - objectives[0]),
    )


def _merit(objectives: np.ndarray, resolution: float) -> np.ndarray:
    """Return how much each start counts: 1 for the best, half where the loss is above that by as
    much as noise alone moves it.
    """
    excess = np.maximum(objectives - objectives.min(), 0.0)
    # Without noise in the data, losses differ by rounding alone.
    unit = max(resolution, 1e-9 * abs(float(objectives.min())), TINY)
    return 1.0 / (1.0 + excess / unit)


def _live(model: CPModel) -> np.ndarray:
    """Return the components that fit something; the direction of the others means nothing."""
    dead = flaws(model.distribute().factors).dead
    return np.setdiff1d(np.arange(model.rank), dead)


def _component(cluster: Cluster, merit: np.ndarray, own: bool) -> Component:
    first = cluster.founder
    similar = {k: value for k, (_, value) in cluster.members.items() if k != first}
    total = float(merit.sum() - merit[first])
    stability = sum(merit[k] * value for k, value in similar.items()) / max(total, TINY)
    counted = own or first > 0
    again = [value for k, value in similar.items() if own or k > 0]
    return Component(
        cluster.column if first == 0 else None,
        float(stability),
        len(again) + counted,
        float(np.mean(again)) if again else math.nan,
    )
