"""Finds out which components of several models are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from smartcpd._common.factors import best_pairs, mode_cosines, unit_columns
from smartcpd._fitting.model import CPModel

SAME, FAIR = 0.95, 0.85
"""Cosines from which on factors are called equal, and fairly similar (Lorenzo-Seva and ten Berge,
*Tucker's congruence coefficient as a meaningful index of factor similarity*, 2006)."""


@dataclass
class Cluster:
    """Components taken for the same: at most one of each model.

    Later components are compared with the first one of the cluster.
    """

    founder: int
    column: int
    members: dict[int, tuple[int, float]] = field(default_factory=dict)
    """For each model in the cluster, its column and how similar that is to the first."""


def congruence(one: CPModel, other: CPModel) -> np.ndarray:
    """Return how similar components are, R_one x R_other.

    The similarity is the product over the modes of the cosines of their columns, and 0 where they
    are not the same. The same are components of one sign whose columns are fairly similar in every
    mode, and equal in the geometric mean over the modes. In many modes columns are alike by nature;
    the first condition keeps them from covering up one in which two components differ.
    """
    cosines = mode_cosines(one.factors, other.factors)
    signs = np.sign(one.weights)[:, None] * np.sign(other.weights)
    product = cosines.prod(axis=0) * signs
    same = (np.abs(cosines).min(axis=0) >= FAIR) & (product >= SAME**one.order)
    # Rounding can lift the cosine of equal columns just above 1.
    return np.where(same, np.minimum(product, 1.0), 0.0)


def clusters(models: Sequence[CPModel], live: Sequence[np.ndarray]) -> list[Cluster]:
    """Return clusters of the components of all models, those of the first model first, in their
    order.

    Models come in the order of their merit: a component of a later one joins the cluster of an
    earlier one, or founds its own. ``live`` are the columns of each that are not negligible.
    """
    found = [Cluster(0, r, {0: (r, 1.0)}) for r in range(models[0].rank)]
    for k, model in enumerate(models[1:], start=1):
        columns = live[k]
        similar = np.zeros((columns.size, len(found)))
        for founder in {c.founder for c in found}:
            here = [n for n, c in enumerate(found) if c.founder == founder]
            there = np.array([found[n].column for n in here])
            similar[:, here] = congruence(model, models[founder])[np.ix_(columns, there)]
        taken = set()
        for i, n in zip(*best_pairs(similar), strict=True):
            if similar[i, n] > 0:
                found[n].members[k] = (int(columns[i]), float(similar[i, n]))
                taken.add(int(i))
        found += [
            Cluster(k, int(r), {k: (int(r), 1.0)}) for i, r in enumerate(columns) if i not in taken
        ]
    return found


def average(cluster: Cluster, models: Sequence[CPModel], merit: np.ndarray) -> list[np.ndarray]:
    """Return the mean of the members' columns, a column a mode; its norm is the mean of their
    sizes.
    """
    first = [unit_columns(A[:, [cluster.column]])[0] for A in models[cluster.founder].factors]
    sums = [np.zeros(len(column)) for column in first]
    size = total = 0.0
    for k, (r, _) in cluster.members.items():
        columns = [unit_columns(A[:, [r]]) for A in models[k].factors]
        for column_sum, (unit, _), reference in zip(sums, columns, first, strict=True):
            sign = -1.0 if float((unit * reference).sum()) < 0 else 1.0
            column_sum += merit[k] * sign * unit[:, 0]
        size += merit[k] * float(models[k].weights[r]) * float(np.prod([n for _, n in columns]))
        total += merit[k]
    signed = np.sign(models[cluster.founder].weights[cluster.column]) or 1.0
    share = (abs(size) / total) ** (1.0 / len(sums)) if total > 0 else 0.0
    units = [unit_columns(column[:, None])[0][:, 0] * share for column in sums]
    return [units[0] * signed, *units[1:]]
