"""What a loss knows of its data: contracts of every loss, and losses that the package has not met.

Nothing outside a loss's file may know it by its name: a subclass under another name gets the
answers of the loss it comes from, and a distribution that is new to the package gets right ones.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pieces import DISTRIBUTIONS, LOSSES

import smartcpd
from smartcpd import CPModel, SmartCPD, SparseTensor, losses, quality
from smartcpd._data.opening import as_storage
from smartcpd._inference.selection.candidates import candidates_of
from smartcpd._kernels import blocks
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Data, Dispersion, Domain, Loss
from smartcpd.report import write_report

EPS = 1e-9
DRAWS = 20_000


@dataclass(frozen=True)
class MyGaussian(losses.Gaussian):
    name = "my-gaussian"


@dataclass(frozen=True)
class MyPoisson(losses.Poisson):
    name = "my-poisson"


@dataclass(frozen=True)
class MyGamma(losses.Gamma):
    name = "my-gamma"


@dataclass(frozen=True)
class Bare(Loss):
    """Formulas, and not a word about a distribution."""

    name = "bare"
    data = Data.NONNEGATIVE
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"

    @staticmethod
    def value(x, m, p):
        u = m + EPS
        return x / (2.0 * u * u) - 1.0 / u

    @staticmethod
    def derivative(x, m, p):
        u = m + EPS
        return (u - x) / (u * u * u)


@dataclass(frozen=True)
class InverseGaussian(Bare):
    """Times to reach a level: their variance is dispersion * mean³."""

    name = "inverse-gaussian"
    dispersion = Dispersion.OPEN
    has_typical_data = True

    @property
    def allows_zeros(self):
        return False

    def variance(self, mean):
        return np.maximum(mean, EPS) ** 3

    def log_base(self, x, dispersion):
        return -0.5 / (x * dispersion) - 0.5 * np.log(2.0 * np.pi * dispersion * x**3)

    def tails(self, x, m, dispersion):
        from scipy import stats

        known = stats.invgauss(m * dispersion, scale=1.0 / dispersion)
        return known.cdf(x), known.sf(x)

    def simulate(self, m, rng, *, dispersion=None):
        return rng.wald(m, 1.0 / (0.1 if dispersion is None else dispersion))


BUILT_IN = [losses.get(name) for name in DISTRIBUTIONS]
OWN = [MyGaussian(), MyPoisson(), MyGamma(), InverseGaussian()]
EVERY = pytest.mark.parametrize("loss", [*BUILT_IN, *OWN], ids=str)
APPROXIMATE = ("beta(-1)", "beta(1.5)", "beta(2)", "beta(3)")
"""Their tails are those of a gamma distribution, or their data may not be what these are of."""


def spread_of(loss):
    """A dispersion that such data may have."""
    return {Dispersion.FIXED: 1.0, Dispersion.OF_AMOUNTS: 0.5}.get(loss.dispersion, 0.2)


def drawn(loss, m, seed=0):
    rng = np.random.default_rng(seed)
    given = {} if loss.dispersion is Dispersion.FIXED else {"dispersion": spread_of(loss)}
    return np.asarray(loss.simulate(np.full(DRAWS, m), rng, **given), float)


def models(loss):
    return (-0.7, 0.6) if loss.domain is Domain.REAL else (0.4, 1.7)


class TestEveryLoss:
    @EVERY
    def test_knows_its_distribution(self, loss):
        assert loss.dispersion is not Dispersion.UNKNOWN
        for statistic in ("variance", "log_base", "tails", "simulate"):
            assert loss.knows(statistic)

    @EVERY
    def test_variance_and_mean_are_those_of_its_draws(self, loss):
        ratios = []
        for m in models(loss):
            x = drawn(loss, m)
            mean = np.asarray(loss.mean(np.array([m]), loss.params), float)
            v = loss.variance(mean)[0] * spread_of(loss)
            assert abs(x.mean() - mean[0]) < 5 * math.sqrt(x.var() / x.size)
            ratios.append(x.var() / v)
        error = np.std((x - mean) ** 2) / x.var() / math.sqrt(x.size)
        if str(loss).startswith("huber"):  # its dispersion is no variance, but in proportion to one
            assert ratios[0] == pytest.approx(ratios[1], rel=8 * error)
        else:
            np.testing.assert_allclose(ratios, 1, atol=6 * error + 1e-3)

    @EVERY
    def test_tails_are_those_of_its_draws(self, loss):
        if str(loss) in APPROXIMATE[-2:]:
            pytest.skip("its draws have no negative values")
        for m in models(loss):
            x = drawn(loss, m)
            at = np.quantile(x, [0.02, 0.3, 0.5, 0.9, 0.99])
            lower, upper = loss.tails(at, np.full(5, m), spread_of(loss))
            np.testing.assert_allclose(lower, [(x <= a).mean() for a in at], atol=0.015)
            np.testing.assert_allclose(upper, [(x >= a).mean() for a in at], atol=0.015)

    @EVERY
    def test_density_is_that_of_its_tails(self, loss):
        """Tails go from 0 to 1, so that a density which is their slope adds up to 1."""
        if str(loss) in APPROXIMATE:
            pytest.skip("an approximation")
        d = spread_of(loss)
        for m in models(loss):
            x = np.unique(np.quantile(drawn(loss, m), [0.0, 0.05, 0.4, 0.8, 0.99]))
            likelihood = np.exp(loss.log_likelihood(x, m, d))
            lower, upper = loss.tails(x, np.full(x.size, m), d)
            at = lower + upper - 1.0  # P(X = x)
            grains = at > 1e-9
            unit = d if loss.dispersion is Dispersion.OF_AMOUNTS or str(loss) == "beta(1)" else 1.0
            np.testing.assert_allclose(likelihood[grains] * unit, at[grains], rtol=1e-5)
            x, h = x[~grains], 1e-5 * np.abs(x[~grains])
            ends = [loss.tails(x + s * h, np.full(x.size, m), d)[0] for s in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * h)
            np.testing.assert_allclose(likelihood[~grains], slope, rtol=1e-3, atol=1e-5)

    @EVERY
    def test_squares_of_slopes_are_second_derivatives(self, loss):
        """Bartlett's identity, up to the dispersion; and typical data stands for all data."""
        m = models(loss)[1]
        x = drawn(loss, m)
        slope, bend = loss.slopes_at(x, m), loss.bends_at(x, m)
        gap = slope**2 - spread_of(loss) * bend
        assert abs(gap.mean()) <= 5 * gap.std() / math.sqrt(x.size) + 1e-6
        if loss.has_typical_data:
            expected = loss.expected_bends(np.array([m]))[0]
            error = 5 * bend.std() / math.sqrt(x.size) + 1e-6 * abs(expected)
            assert bend.mean() == pytest.approx(expected, abs=error)

    @EVERY
    def test_no_model_value_is_better_than_the_saturated_one(self, loss):
        x = drawn(loss, 0.9)[:40]
        x = x if loss.allows_zeros else x[x > 0.01]
        least = loss.saturated(x)
        grid = np.linspace(0.01, 8, 60)
        for m in [*grid, *-grid] if loss.domain is Domain.REAL else grid:
            assert (least <= loss.values_at(x, m) + 2e-6).all()
        np.testing.assert_array_equal(loss.values_at(x, loss.best_model(x)), least)

    @EVERY
    def test_dispersion_is_found_in_its_draws(self, loss):
        if loss.dispersion is Dispersion.FIXED:
            assert truth_of(loss).dispersion(np.ones((20, 18, 16))) is None
            with pytest.raises(InvalidParameterError, match=r"leave dispersion out. Got 2.0"):
                loss.tail_probability(1.0, 1.0, 2.0)
            return
        truth = truth_of(loss)
        m = CPModel(truth.factors).full()
        X = loss.simulate(m, np.random.default_rng(1), dispersion=spread_of(loss))
        assert truth.dispersion(X) == pytest.approx(spread_of(loss), rel=0.12)


def truth_of(loss, shape=(20, 18, 16), rank=1, seed=0):
    """A model of means between 0.5 and 2."""
    rng = np.random.default_rng(seed)
    return CPModel([rng.uniform(0.8, 1.25, (n, rank)) for n in shape], loss_function=loss)


TWINS = [("gaussian", MyGaussian()), ("poisson", MyPoisson()), ("gamma", MyGamma())]
twins = pytest.mark.parametrize(("name", "twin"), TWINS, ids=[t[0] for t in TWINS])


def data_of(name, shape=(8, 7, 6)):
    rng = np.random.default_rng(3)
    m = CPModel([rng.gamma(1.0, 1.0, (n, 2)) + 0.1 for n in shape]).full()
    noise = {"gaussian": {"sigma": 10.0}, "gamma": {"shape": 4.0}}.get(name, {})
    return np.asarray(losses.get(name).simulate(m, rng, **noise), float)


def fits(name, twin, X):
    return [SmartCPD(2, loss, random_state=0, progress=False).fit(X) for loss in (name, twin)]


def same(one, other):
    """Numbers in any nesting agree to ten digits, and all else exactly."""
    if isinstance(one, dict):
        one, other = ([v for _, v in sorted(d.items())] for d in (one, other))
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, str | None):
        assert one == other
    else:
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


class TestTwins:
    """A loss under another name."""

    @twins
    def test_gets_the_same_answers(self, name, twin, tmp_path):
        X = data_of(name)
        answers = []
        for found in fits(name, twin, X):
            model = found.model_
            measured = quality.measure(model, X)
            page = write_report(tmp_path / "page.html", model, quality=measured)
            texts = str(model.diagnose(X)), Path(page).read_text()
            ends = [model.intervals(X, method=method) for method in ("hessian", "conditional")]
            ends.append(model.intervals(X, method="bootstrap", n_bootstrap=20, random_state=0))
            answers.append(
                [
                    [text.replace(str(model.loss_function), "L") for text in texts],
                    {**measured.to_dict(), "loss": "L"},
                    [list(found.factors_), found.loss_, found.solver_],
                    [[e.lower, e.upper, e.weights_lower, e.dispersion] for e in ends],
                    [model.dispersion(X), model.surprise(X), model.score_samples(X)],
                ]
            )
        same(*answers)

    def test_noise_of_least_squares_is_estimated_whatever_its_name(self):
        X = data_of("gaussian")
        found = fits("gaussian", MyGaussian(), X)[1].model_
        assert found.dispersion(X) == pytest.approx(100, rel=0.15)
        assert found.intervals(X).dispersion == found.dispersion(X)

    def test_sparse_counts(self):
        X = np.random.default_rng(0).poisson(0.3, (15, 12, 10))
        thin = SparseTensor(np.argwhere(X), X[X > 0], X.shape)
        one, two = fits("poisson", MyPoisson(), thin)
        assert one.solver_ == two.solver_
        same([list(one.factors_), one.loss_], [list(two.factors_), two.loss_])

    @twins
    def test_selection_treats_it_alike(self, name, twin):
        storage = as_storage(data_of(name))
        other = "poisson-log" if name == "poisson" else "beta(0.5)" if name == "gamma" else "huber"
        found = [candidates_of([loss, other], storage) for loss in (name, twin)]
        assert [c.n_estimated for c in found[0]] == [c.n_estimated for c in found[1]]

    def test_selection_scores_it_alike(self):
        X, rows = data_of("gamma", (6, 5, 4)), []
        for loss in ("gamma", MyGamma()):
            chosen = smartcpd.select(X, [1, 2], loss, cv=2, n_restarts=1, n_jobs=1, random_state=0)
            rows.append([[r.rank, r.log_likelihood, r.deviance] for r in chosen.rows])
        same(*rows)

    def test_machine_code_of_ones_own_loss_is_not_kept(self):
        """The key of what is kept on disk knows the sources of the package alone."""
        Bare().derivative_block("float64")
        kept = Path(blocks.__file__).parent / "__pycache__"
        assert not list(kept.glob("*bare*"))
        assert MyGaussian().blueprint is losses.Gaussian
        assert InverseGaussian().blueprint is Bare


class TestInverseGaussian:
    """A distribution that the package does not have."""

    def test_fits_and_intervals(self):
        loss, rng = InverseGaussian(), np.random.default_rng(5)
        covered, spreads = [], []
        for seed in range(8):
            truth = truth_of(loss, (12, 10, 8), seed=seed)
            X = loss.simulate(truth.full(), rng, dispersion=0.05)
            model = SmartCPD(1, loss, init=truth, random_state=0, progress=False).fit(X).model_
            found = model.intervals(X, 0.9)
            covered += [inside.mean() for inside in found.contains(truth)]
            spreads.append(found.dispersion)
        assert np.mean(covered) == pytest.approx(0.9, abs=0.06)
        assert np.mean(spreads) == pytest.approx(0.05, rel=0.05)

    def test_what_is_said_of_a_fit(self):
        loss = InverseGaussian()
        truth = truth_of(loss)
        X = loss.simulate(truth.full(), np.random.default_rng(0), dispersion=0.2)
        X[3, 4, 5] = 50.0
        tails = truth.surprise(X, dispersion=0.2)
        assert tails[3, 4, 5] < 1e-6
        assert np.mean(tails < 0.1) == pytest.approx(0.1, abs=0.015)
        mean = truth.score_samples(X, dispersion=0.2)
        assert mean.mean() == pytest.approx(loss.log_likelihood(X, truth.full(), 0.2).mean())
        measured = quality.measure(truth, X)
        assert measured.hot_cells[0].index == (3, 4, 5)
        deviance = 2 * (measured.mean_loss - measured.saturated_loss)
        known = (X - truth.full()) ** 2 / (truth.full() ** 2 * X)
        assert deviance == pytest.approx(known.mean(), rel=1e-6)
        assert "dominant cells" in str(truth.diagnose(X))

    def test_bootstrap(self):
        loss = InverseGaussian()
        truth = truth_of(loss, (12, 10, 8))
        X = loss.simulate(truth.full(), np.random.default_rng(0), dispersion=0.05)
        model = SmartCPD(1, loss, init=truth, random_state=0, progress=False).fit(X).model_
        widths = [
            np.mean([(high - low).mean() for low, high in zip(e.lower, e.upper, strict=True)])
            for e in (
                model.intervals(X),
                model.intervals(X, method="bootstrap", n_bootstrap=30, random_state=0),
            )
        ]
        assert widths[0] == pytest.approx(widths[1], rel=0.2)


@cache
def squares():
    return losses.custom(lambda x, m: 0.5 * (x - m) * (x - m), lambda x, m: m - x, name="mine")


class TestWhatNobodyKnows:
    """Losses without a distribution: nothing is guessed."""

    def test_is_the_same_of_all_questions(self):
        for loss in map(losses.get, set(LOSSES) - set(DISTRIBUTIONS)):
            assert loss.dispersion is Dispersion.UNKNOWN
            assert not loss.has_typical_data
            assert not any(loss.knows(s) for s in ("variance", "log_base", "tails", "simulate"))

    @pytest.mark.parametrize("loss", [squares(), Bare(), losses.Alpha(0.5)], ids=str)
    def test_is_refused(self, loss):
        X = np.abs(data_of("gaussian")) + 0.1
        model = truth_of(loss, X.shape)
        assert model.dispersion(X) is None
        for ask in (model.surprise, model.score_samples):
            with pytest.raises(InvalidParameterError, match=re.escape(f"'{loss}' names no d")):
                ask(X)
        for ask in (loss.variance, lambda m: loss.simulate(m, np.random.default_rng(0))):
            with pytest.raises(InvalidParameterError, match="names no distribution"):
                ask(np.ones(2))
        with pytest.raises(IncompatibleError, match="names no distribution to simulate"):
            model.intervals(X, method="bootstrap")
        with pytest.raises(IncompatibleError, match="no probability"):
            candidates_of([loss, "gaussian"], as_storage(X))

    def test_nothing_is_said_of_chance(self):
        X = truth_of(None, (9, 8, 7)).full()
        X[1, 2, 3] = 90.0
        said = str(truth_of(squares(), X.shape).diagnose(X))
        assert "dominant cells" in said
        assert "chance" not in said

    def test_intervals_measure_it_on_the_data(self):
        """With the least squares of a custom loss, they are those of 'gaussian'."""
        X = data_of("gaussian")
        model = SmartCPD(2, "gaussian", random_state=0, progress=False).fit(X).model_
        mine = CPModel(model.factors, model.weights, squares())
        one, two = (m.intervals(X) for m in (model, mine))
        assert two.dispersion == pytest.approx(one.dispersion, rel=1e-6)
        for a, b in zip(one.lower, two.lower, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)

    def test_a_loss_that_bends_less_far_out_has_wider_intervals(self):
        """Second derivatives are those of the data, not those of data that is as expected."""
        rng = np.random.default_rng(0)
        truth = truth_of(None, (12, 10, 8))
        X = truth.full() + rng.standard_t(3, truth.shape)
        robust = losses.custom(
            lambda x, m: math.sqrt(1.0 + (x - m) * (x - m)),
            lambda x, m: (m - x) / math.sqrt(1.0 + (x - m) * (x - m)),
        )
        found = CPModel(truth.factors, loss_function=robust).intervals(X, constraint="free")
        e = X - truth.full()
        psi, bend = e / np.sqrt(1 + e**2), (1 + e**2) ** -1.5
        correction = X.size / (X.size - 28)
        assert found.dispersion == pytest.approx(
            correction * (psi**2).mean() / bend.mean(), rel=1e-3
        )

    def test_a_loss_that_does_not_bend_has_no_information(self):
        kinked = losses.custom(lambda x, m: abs(x - m), lambda x, m: 1.0 if m > x else -1.0)
        X = data_of("gaussian")
        with pytest.raises(IncompatibleError, match=r"second derivatives .* vanish"):
            truth_of(kinked, X.shape).intervals(X)

    def test_figures_rest_on_the_residuals(self):
        X = data_of("gaussian")
        model = CPModel(truth_of(None, X.shape).factors, loss_function=squares())
        found = quality.measure(model, X)
        assert (found.dispersion, found.scatter, found.deviance_attainable) == (None, None, None)
        m = model.full().reshape(-1)
        for b in found.calibration:
            inside = (m >= b.low) & (m <= b.high)
            errors = (X.reshape(-1) - m)[inside]
            assert b.error == pytest.approx(np.linalg.norm(errors) / inside.sum())
