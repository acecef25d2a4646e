"""Tail probabilities are those of simulated data, whatever the loss."""

import numpy as np
import pytest

from smartcpd import CPModel, SparseTensor, losses
from smartcpd.errors import InvalidParameterError

DRAWS = 40_000


def empirical(draws, x):
    return min(1.0, 2 * min(np.mean(draws <= x), np.mean(draws >= x)))


def test_compound_of_counts_and_amounts():
    """Tweedie with power 1.5, drawn as what it is: a sum of gamma amounts."""
    mean, phi, power = 2.0, 0.7, 1.5
    rng = np.random.default_rng(0)
    counts = rng.poisson(mean ** (2 - power) / (phi * (2 - power)), DRAWS)
    draws = rng.gamma(np.maximum(counts, 1e-9), phi * (power - 1) * mean ** (power - 1))
    draws[counts == 0] = 0.0
    assert draws.mean() == pytest.approx(mean, rel=0.02)
    for x in (0.0, 0.3, 2.0, 6.0):
        found = losses.get("beta(0.5)").tail_probability(x, mean, phi)
        assert found == pytest.approx(empirical(draws, x), abs=0.02)


def test_shapes_and_missing_values():
    found = losses.get("poisson").tail_probability([1.0, np.nan], [[2.0], [3.0]])
    assert found.shape == (2, 2)
    assert np.isnan(found[:, 1]).all()
    assert (found[:, 0] <= 1).all()


def test_amounts_scatter_in_their_own_unit():
    loss = losses.get("poisson")
    assert loss.tail_probability(300.0, 200.0, 100.0) == loss.tail_probability(3.0, 2.0)


def test_what_cannot_be_told():
    with pytest.raises(InvalidParameterError, match="pass dispersion"):
        losses.get("gaussian").tail_probability(1.0, 0.0)
    own = losses.custom(lambda x, m: (x - m) ** 2, lambda x, m: 2.0 * (m - x))
    with pytest.raises(InvalidParameterError, match="names no distribution"):
        own.tail_probability(1.0, 0.0)


class TestDispersion:
    def setup_method(self):
        self.rng = np.random.default_rng(0)
        self.factors = [self.rng.random((n, 2)) + 0.5 for n in (30, 25, 20)]

    def model(self, loss):
        return CPModel(self.factors, loss_function=loss)

    def values(self):
        return np.einsum("ir,jr,kr->ijk", *self.factors)

    def test_gaussian(self):
        X = self.values() + 0.3 * self.rng.standard_normal((30, 25, 20))
        assert self.model("gaussian").dispersion(X) == pytest.approx(0.09, rel=0.05)

    def test_gamma(self):
        X = losses.get("gamma").simulate(self.values(), self.rng, shape=4.0)
        assert self.model("gamma").dispersion(X) == pytest.approx(0.25, rel=0.1)

    def test_huber_without_outliers_is_gaussian(self):
        X = self.values() + 0.1 * self.rng.standard_normal((30, 25, 20))
        assert self.model("huber(2)").dispersion(X) == pytest.approx(0.01, rel=0.05)

    def test_counts_leave_nothing_open(self):
        X = self.rng.poisson(self.values())
        assert self.model("poisson").dispersion(X) is None

    def test_sparse_amounts(self):
        """Counts in units of 0.5, mostly zeros, are Poisson in that unit."""
        model = CPModel([0.2 * A for A in self.factors], loss_function="poisson")
        X = 0.5 * self.rng.poisson(2 * model.full())
        sparse = SparseTensor(np.nonzero(X), X[np.nonzero(X)], X.shape)
        dense = model.dispersion(X)
        assert dense == pytest.approx(0.5, rel=0.15)
        assert model.dispersion(sparse) == pytest.approx(dense, rel=1e-6)
