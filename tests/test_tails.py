"""Tails of distributions against SciPy's, far out and at the edges too."""

import numpy as np
import pytest
from scipy import stats

from smartcpd._common.factors import best_pairs
from smartcpd.losses.tails import (
    bernoulli_tails,
    gamma_tails,
    negative_binomial_tails,
    normal_tails,
    poisson_tails,
    rayleigh_tails,
)

X = np.array([-1.0, 0.0, 0.3, 1.0, 2.0, 2.5, 7.0, 40.0, 300.0])[:, None]
M = np.array([1e-300, 1e-3, 0.5, 3.0, 100.0])
CASES = {
    "normal": (normal_tails(X, M, 0.7), stats.norm(M, 0.7)),
    "gamma": (gamma_tails(X, 2.5, M), stats.gamma(2.5, scale=M)),
    "rayleigh": (rayleigh_tails(X, M), stats.rayleigh(scale=M)),
    "poisson": (poisson_tails(X, M), stats.poisson(M)),
    "no mean": (poisson_tails(X, np.zeros(1)), stats.poisson(0.0)),
    "bernoulli": (bernoulli_tails(X, M / (1 + M)), stats.bernoulli(M / (1 + M))),
    "negative binomial": (
        negative_binomial_tails(X, 1.7, 1 / (1 + M)),
        stats.nbinom(1.7, 1 / (1 + M)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name):
    found, law = CASES[name]
    least = np.ceil(X) - 1.0 if hasattr(law.dist, "pmf") else X
    with np.errstate(over="ignore"):
        expected = law.cdf(X), law.sf(least)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, np.broadcast_to(other, own.shape), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3)])
def test_pairs_have_the_largest_sum(shape):
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    for _ in range(200):
        similarity = rng.random(shape)
        rows, columns = best_pairs(similarity)
        assert np.array_equal(rows, np.sort(rows))
        expected = linear_sum_assignment(similarity, maximize=True)
        assert np.array_equal(columns, expected[1])
        assert np.array_equal(rows, expected[0])
