"""Densities sum to one, and dispersions are those that data was drawn with."""

import numpy as np
import pytest

from smartcpd import CPModel, losses
from smartcpd._data.opening import as_storage
from smartcpd._inference.selection.candidates import as_candidate, candidates_of, differs_from
from smartcpd._inference.selection.likelihood import fitted_scale, has_density
from smartcpd._objectives.parameter import likeliest, rescaled

COUNTED = ["poisson", "poisson-log", "negative-binomial(1.7)"]
MEASURED = ["gaussian", "huber(0.8)", "gamma"]


def density(name, x, m, scale=1.0):
    return np.exp(losses.get(name).log_likelihood(x, m, scale))


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("m", [0.4, 1.5])
def test_probabilities_of_counts_sum_to_one(name, m):
    loss = losses.get(name)
    x = np.arange(400.0)
    p = density(name, x, m)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    assert p @ x == pytest.approx(loss.mean(m, loss.params), rel=1e-5)


@pytest.mark.parametrize("name", ["bernoulli-odds", "bernoulli-logit"])
def test_probabilities_of_yes_and_no_sum_to_one(name):
    assert density(name, np.array([0.0, 1.0]), 0.7).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "scale"),
    [("rayleigh", 1.0), *((name, scale) for name in MEASURED for scale in (1.0, 0.2))],
)
def test_densities_integrate_to_one(name, scale):
    low = 1e-6 if losses.get(name).data.value[0] == 0 else -60.0
    x = np.linspace(low, 60.0, 600_001)
    assert np.trapezoid(density(name, x, 1.3, scale), x) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("beta", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("scale", [0.5, 1.5])
def test_the_compound_of_counts_and_amounts(beta, scale):
    x = np.geomspace(1e-7, 80.0, 20_001)
    name = f"beta({beta})"
    nothing = density(name, np.zeros(1), 1.3, scale)[0]
    p = density(name, x, 1.3, scale)
    assert nothing + np.trapezoid(p, x) == pytest.approx(1.0, abs=2e-3)
    assert np.trapezoid(p * x, x) == pytest.approx(1.3, rel=2e-3)


def test_many_events_go_on_where_the_series_ends():
    at = np.array([299.0, 301.0])
    one, two = losses.get("beta(0.5)").log_likelihood(at, 300.0, 0.0692)
    assert one == pytest.approx(two, abs=0.02)


class TestDensitiesOfLosses:
    def test_amounts_have_none_under_counts(self):
        assert not has_density(losses.get("poisson"), as_storage(np.array([[0.5, 1.0]])))
        assert has_density(losses.get("poisson"), as_storage(np.array([[2.0, 1.0]])))

    def test_losses_of_the_user_have_none(self):
        mine = losses.custom(lambda x, m: (x - m) ** 2, lambda x, m: 2 * (m - x), name="mine")
        assert not has_density(mine, as_storage(np.array([[0.5, 1.0]])))


class TestScales:
    factors = [np.random.default_rng(n).uniform(0.5, 1.5, (30, 2)) for n in range(3)]
    m = np.einsum("ir,jr,kr->ijk", *factors)

    def model(self, loss):
        return CPModel(self.factors, loss_function=loss)

    @pytest.mark.parametrize("shape", [0.5, 4.0, 100.0])
    def test_gamma(self, shape):
        X = self.m * np.random.default_rng(0).gamma(shape, 1 / shape, self.m.shape)
        found = fitted_scale(self.model("gamma"), as_storage(X))
        assert found == pytest.approx(1 / shape, rel=0.05)

    def test_missing_cells_say_nothing(self):
        X = self.m * np.random.default_rng(0).gamma(4.0, 0.25, self.m.shape)
        mask = np.random.default_rng(1).random(X.shape) < 0.8
        spoilt = np.where(mask, X, 1e6)
        found = fitted_scale(self.model("gamma"), as_storage(spoilt, mask=mask))
        assert found == pytest.approx(0.25, rel=0.05)

    def test_scales_that_the_loss_fixes(self):
        assert fitted_scale(self.model("poisson"), as_storage(np.ones(self.m.shape))) == 1.0

    @pytest.mark.parametrize("r", [0.5, 3.0])
    def test_r(self, r):
        rng = np.random.default_rng(0)
        X = rng.negative_binomial(r, r / (r + self.m))
        model = self.model("poisson")
        storage, wanted = as_storage(X), losses.get("negative-binomial")
        found = likeliest(wanted, storage, model.factors, model.loss_function)
        assert found.value == pytest.approx(r, rel=0.1)
        assert abs(found.value / r - 1) < 4 * found.error
        assert differs_from(model, storage, as_candidate("negative-binomial", storage))
        same = rescaled(model.factors, model.loss_function, found.loss)
        means = found.value * CPModel(same).full()
        assert np.allclose(means, model.full())

    def test_poisson_counts_have_no_r(self):
        rng = np.random.default_rng(0)
        storage = as_storage(rng.poisson(0.97 * self.m))
        candidate = as_candidate("negative-binomial", storage)
        assert not differs_from(self.model("poisson"), storage, candidate)


class TestCandidates:
    @pytest.mark.parametrize(
        ("X", "expected"),
        [
            ([[0, 1], [1, 0]], ["bernoulli-odds", "bernoulli-logit"]),
            ([[0, 3], [1, 0]], ["poisson", "negative-binomial"]),
            ([[0.5, 3.0], [1.0, 2.0]], ["gamma", "gaussian"]),
            ([[0.5, 0.0], [1.0, 2.0]], ["poisson"]),
            ([[0.5, -1.0], [1.0, 2.0]], ["gaussian"]),
        ],
    )
    def test_by_the_values(self, X, expected):
        assert [str(c) for c in candidates_of("auto", as_storage(np.array(X)))] == expected
