"""Hessians of rows as a guess of the whole Hessian, for losses whose models are logarithms."""

import numpy as np
import pytest

from smartcpd import SmartCPD, SparseTensor, losses
from smartcpd._methods.row_hessians import RowHessians, row_bends
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem

SHAPE, RANK = (6, 5, 4), 2


@pytest.fixture
def events():
    rng = np.random.default_rng(0)
    return (rng.random(SHAPE) < 0.2).astype(float)


def as_sparse(X):
    return SparseTensor(np.argwhere(X), X[X != 0], X.shape)


@pytest.mark.parametrize("loss", ["bernoulli-logit", "poisson-log"])
@pytest.mark.parametrize("kind", [np.asarray, as_sparse])
def test_they_are_the_slopes_of_the_gradient(events, loss, kind):
    problem = Problem.build(kind(events), RANK, losses.get(loss))
    A = np.random.default_rng(1).standard_normal((sum(SHAPE), RANK))
    bends = row_bends(problem, 1, lambda: None)
    assert bends is not None
    found = np.concatenate(bends(A))
    objective = objective_of(problem.storage, problem.loss, 1)
    for row in (0, 7, 13):
        for r in range(RANK):
            up, down = A.copy(), A.copy()
            up[row, r] += 1e-5
            down[row, r] -= 1e-5
            slope = (objective.gradient(up)[1] - objective.gradient(down)[1])[row] / 2e-5
            np.testing.assert_allclose(found[row, r], slope, rtol=1e-5, atol=1e-9)


def test_a_row_that_bends_nothing_takes_finite_steps():
    bends = [np.stack([np.eye(2), np.zeros((2, 2))]), np.zeros((1, 2, 2))]
    found = RowHessians.of(bends, 1.0)
    G = np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    step = found.solve(G, np.ones_like(G, bool))
    assert np.isfinite(step).all()
    np.testing.assert_allclose(step[0], G[0], rtol=1e-3)


def test_other_losses_do_without():
    X = np.random.default_rng(0).random(SHAPE)
    problem = Problem.build(X, RANK, losses.get("gaussian"))
    assert row_bends(problem, 1, lambda: None) is None


@pytest.mark.parametrize("loss", ["bernoulli-logit", "poisson-log"])
def test_a_longer_run_from_an_end_that_converged_finds_little(events, loss):
    """Data that a model can be certain of: the loss falls towards infinity."""
    X = np.concatenate([events, 1.0 - events, events[::-1]])
    fit = SmartCPD(1, loss, random_state=0).fit(X)
    later = SmartCPD(1, loss, init=fit.model_, tol=2e-4, max_epochs=20_000).fit(X)
    resolution = (sum(X.shape) - 2) / X.size
    assert fit.status_.converged
    assert fit.loss_ - later.loss_ <= 0.02 * resolution
