"""Fits end with exact rows in their first mode, so that `transform` returns them."""

import numpy as np
import pytest

from smartcpd import SmartCPD, SparseTensor, datasets

SHAPE, RANK = (40, 30, 20), 3
CLOSE = 1e-4
MAKERS = {
    "poisson": datasets.count,
    "gamma": datasets.gamma,
    "gaussian": datasets.gaussian,
    "bernoulli-odds": datasets.binary,
}


def distance(fit, X, **given):
    """Between the rows of a fit and those that transform finds, relative to columns."""
    A, B = fit.transform(X, **given), fit.factors_[0]
    return np.max(np.abs(A - B) / np.abs(B).max(axis=0))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("loss", MAKERS)
def test_transform_returns_the_rows_of_a_default_fit(loss, seed):
    X, _ = MAKERS[loss](SHAPE, RANK, random_state=seed)
    fit = SmartCPD(RANK, loss, random_state=seed).fit(X)
    assert fit.history_[-1].phase == "rows"
    assert distance(fit, X) <= CLOSE


@pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds"])
def test_transform_returns_the_rows_of_a_sparse_fit(loss):
    X, _ = datasets.events((60, 40, 30), RANK, n_events=3000, random_state=2)
    if loss == "bernoulli-odds":
        X = SparseTensor(np.stack(X.indices, axis=1), 1, X.shape)
    assert distance(SmartCPD(RANK, loss, random_state=0).fit(X), X) <= CLOSE


def test_missing_cells_and_weights_count_as_in_the_fit():
    X, _ = datasets.count(SHAPE, RANK, random_state=3)
    rng = np.random.default_rng(0)
    given = {"mask": rng.random(SHAPE) < 0.7, "weights": rng.uniform(0.5, 2.0, SHAPE)}
    fit = SmartCPD(RANK, "poisson", random_state=0).fit(X, **given)
    assert distance(fit, X, **given) <= CLOSE


def test_the_loss_does_not_rise_and_is_that_of_the_model():
    X, _ = datasets.binary(SHAPE, RANK, random_state=4)
    fit = SmartCPD(RANK, "bernoulli-odds", random_state=0).fit(X)
    before = [record for record in fit.history_ if record.phase != "rows"][-1]
    assert fit.loss_ <= before.loss
    np.testing.assert_allclose(fit.loss_, fit.model_.loss(X), rtol=1e-12)


@pytest.mark.parametrize(
    "given",
    [{"solver": "lbfgs"}, {"step": "adagrad"}, {"max_epochs": 3}, {"constraint": "simplex"}],
)
def test_fits_of_the_users_own_choosing_end_as_they_did(given):
    X, _ = datasets.count(SHAPE, RANK, random_state=5)
    fit = SmartCPD(RANK, "poisson", random_state=0, **given).fit(X)
    assert "rows" not in fit.history_.phases


def test_an_interrupt_that_numba_swallows_there_keeps_the_fit(monkeypatch):
    def lost(*args):
        raise TypeError("_get_jit_address() missing 1 required positional argument: 'sig'")

    monkeypatch.setattr("smartcpd._strategies.restarts.with_settled_rows", lost)
    X, _ = datasets.count(SHAPE, RANK, random_state=0)
    assert SmartCPD(RANK, "poisson", random_state=0).fit(X).status_.interrupted
