"""Likelihood of slices and surprise of cells."""

import numpy as np
import pytest
from scipy import stats

from smartcpd import CPModel, SmartCPD, SparseTensor, datasets, losses
from smartcpd.errors import InvalidParameterError

DISTRIBUTIONS = {
    "poisson": (lambda m: stats.poisson(m), None),
    "poisson-log": (lambda m: stats.poisson(np.exp(m)), None),
    "bernoulli-odds": (lambda m: stats.bernoulli(m / (1 + m)), None),
    "bernoulli-logit": (lambda m: stats.bernoulli(1 / (1 + np.exp(-m))), None),
    "negative-binomial(3)": (lambda m: stats.nbinom(3, 1 / (1 + m)), None),
    "gaussian": (lambda m: stats.norm(m, 0.5), 0.25),
    "gamma": (lambda m: stats.gamma(4, scale=m / 4), 0.25),
    "rayleigh": (lambda m: stats.rayleigh(scale=m / np.sqrt(np.pi / 2)), None),
    "beta(0)": (lambda m: stats.gamma(4, scale=m / 4), 0.25),
    "beta(1)": (lambda m: stats.poisson(m), 1.0),
    "beta(2)": (lambda m: stats.norm(m, 0.5), 0.25),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_likelihoods_are_those_of_scipy(name):
    make, dispersion = DISTRIBUTIONS[name]
    m = np.random.default_rng(0).uniform(0.3, 2, 50)
    expected = make(m)
    x = np.abs(expected.rvs(random_state=1).astype(float))
    scipys = expected.logpmf(x) if hasattr(expected.dist, "pmf") else expected.logpdf(x)
    ours = losses.get(name).log_likelihood(x, m, dispersion)
    np.testing.assert_allclose(ours, scipys, atol=1e-6)


@pytest.fixture(scope="module")
def counts():
    X, _ = datasets.count((12, 10, 8), 2, a_max=1.5, random_state=0)
    X = X.astype(float)
    X[3, 4, 5] = np.nan
    X[7] = np.nan
    return X, SmartCPD(2, "poisson", random_state=0).fit(X)


@pytest.mark.parametrize("mode", range(3))
def test_slices_are_scored_by_their_observed_cells(counts, mode):
    X, est = counts
    cells = stats.poisson(est.model_.full()).logpmf(np.nan_to_num(X))
    cells[np.isnan(X)] = np.nan
    rows = np.moveaxis(cells, mode, 0).reshape(X.shape[mode], -1)
    seen = ~np.isnan(rows).all(axis=1)
    scores = est.model_.score_samples(X, mode)
    np.testing.assert_allclose(scores[seen], np.nanmean(rows[seen], axis=1), atol=1e-6)
    assert np.isnan(scores[~seen]).all()
    known = ~np.isnan(X)
    at = np.argwhere(known & (X > 0))
    thin = SparseTensor(at, X[tuple(at.T)], X.shape, missing=np.argwhere(~known))
    np.testing.assert_allclose(est.model_.score_samples(thin, mode), scores, atol=1e-9)


def test_new_slices_are_scored_with_rows_of_their_own(counts):
    X, est = counts
    scores = est.score_samples(X[:3])
    np.testing.assert_allclose(scores, est.model_.score_samples(X)[:3], atol=1e-2)
    odd = X[:3].copy()
    odd[1] = odd[1][::-1]
    assert est.score_samples(odd)[1] < scores[1]


def test_a_dispersion_that_is_open_is_estimated():
    rng = np.random.default_rng(0)
    model = CPModel([rng.uniform(1, 2, (n, 2)) for n in (9, 8, 7)], loss_function="gaussian")
    X = model.full() + 0.2 * rng.standard_normal(model.shape)
    own, given = model.score_samples(X), model.score_samples(X, dispersion=0.04)
    np.testing.assert_allclose(own, given, atol=0.2)
    mean = np.log(np.exp(-0.5) / np.sqrt(2 * np.pi * 0.04))
    assert given.mean() == pytest.approx(mean, abs=0.1)


def test_surprise_of_a_tensor_of_entries_and_of_cells(counts):
    X, est = counts
    model = est.model_
    whole = model.surprise(X)
    assert whole.shape == X.shape
    assert np.array_equal(np.isnan(whole), np.isnan(X))
    expected = model.loss_function.tail_probability(X, model.full())
    np.testing.assert_allclose(whole, expected, rtol=1e-9)
    cells = np.array([[0, 0, 0], [5, 4, 3]])
    np.testing.assert_allclose(model.surprise(X[tuple(cells.T)], cells), whole[tuple(cells.T)])
    at = np.argwhere(np.nan_to_num(X) > 0)
    thin = SparseTensor(at, X[tuple(at.T)], X.shape)
    np.testing.assert_allclose(model.surprise(thin), whole[thin.indices])


def test_what_has_no_distribution_is_refused(counts):
    X, _ = counts
    own = losses.custom(lambda x, m: (x - m) ** 2, lambda x, m: 2.0 * (m - x))
    model = CPModel([np.ones((n, 1)) for n in X.shape], loss_function=own)
    with pytest.raises(InvalidParameterError, match="names no distribution"):
        model.score_samples(X)
    with pytest.raises(InvalidParameterError, match="names no distribution"):
        model.surprise(X)
    with pytest.raises(InvalidParameterError, match="no loss"):
        CPModel(model.factors).surprise(X)
    poisson = CPModel(model.factors, loss_function="poisson")
    with pytest.raises(InvalidParameterError, match="must be the same"):
        poisson.score_samples(X[:4])
    with pytest.raises(InvalidParameterError, match="dispersion must be a positive number"):
        poisson.score_samples(X, dispersion=-1.0)
