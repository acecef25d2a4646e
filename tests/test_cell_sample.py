"""Scales that are judged by a sample of cells: how widely data scatters around a model."""

import numpy as np
import pytest

from smartcpd import SparseTensor, losses
from smartcpd._common.stacked import stack
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem

SHAPE = (120, 100)


@pytest.fixture
def counts():
    """Rare counts, their means as a product of two effects, and these as factors of rank 1 and, of
    the logarithms, of rank 2."""
    rng = np.random.default_rng(0)
    rows, columns = (0.4 * rng.gamma(1.0, size=n) + 1e-4 for n in SHAPE)
    X = rng.poisson(np.outer(rows, columns))
    own = [rows[:, None], columns[:, None]]
    ones = [np.ones(n) for n in SHAPE]
    logs = [np.stack([np.log(rows), ones[0]], 1), np.stack([ones[1], np.log(columns)], 1)]
    return X, own, logs


def test_the_scatter_of_sparse_counts_is_that_of_all_cells(counts):
    X, factors, _ = counts
    X[3, 4] = 4000  # one that the model expects, and that random cells rarely meet
    factors[0][3], factors[1][4] = 63.0, 63.0
    mean = factors[0] @ factors[1].T
    X[3], X[:, 4] = np.round(mean[3]), np.round(mean[:, 4])
    whole = ((X - mean) ** 2).sum() / mean.sum()
    problem = Problem.build(SparseTensor.of(_sparse(X)), 1, losses.get("poisson"))
    assert CellSample(problem).dispersion(stack(factors)) == pytest.approx(whole, rel=0.25)


def test_a_mean_and_its_logarithm_are_as_noisy(counts):
    X, factors, logs = counts
    found = []
    for loss, A in (("poisson", factors), ("poisson-log", logs)):
        problem = Problem.build(SparseTensor.of(_sparse(X)), 2, losses.get(loss))
        found.append(CellSample(problem).dispersion(stack(A)))
    assert found[0] == pytest.approx(found[1], rel=0.1)


def test_yes_and_no_scatter_as_their_probability_says(counts):
    events = np.minimum(counts[0], 1)
    problem = Problem.build(SparseTensor.of(_sparse(events)), 2, losses.get("bernoulli-logit"))
    wrong = stack([100.0 * F for F in counts[2]])  # certain of nearly every cell
    known = problem.freedom / problem.storage.n_observed
    assert 0 < CellSample(problem).resolution(wrong) <= known


def test_missing_cells_are_no_zeros(counts):
    X, factors, _ = counts
    missing = np.argwhere(X == 0)[::2]
    problem = Problem.build(SparseTensor.of(_sparse(X)).with_missing(missing), 1, "poisson")
    sample = CellSample(problem)
    assert sample.estimate(stack(factors)).loss == pytest.approx(
        _mean_loss(X, factors, missing), abs=0.02
    )


def _mean_loss(X, factors, missing):
    mean = factors[0] @ factors[1].T
    values = mean - X * np.log(mean)
    values[tuple(missing.T)] = 0.0
    return values.sum() / (values.size - len(missing))


def _sparse(X):
    from scipy.sparse import coo_array

    return coo_array(X)
