"""Losses: contracts that hold for every one of them, then what each promises in particular."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types
from pieces import DISTRIBUTIONS, LOSSES

import smartcpd
from smartcpd import constraints, decompose, losses
from smartcpd._common.distinct import distinct
from smartcpd._data.opening import as_storage
from smartcpd._fitting.fit import fit
from smartcpd._kernels.compiling import inline
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Data, Domain

every_loss = pytest.mark.parametrize("name", LOSSES)
every_distribution = pytest.mark.parametrize("name", DISTRIBUTIONS)
many = settings(max_examples=25, deadline=None, derandomize=True)
MODELS = st.floats(0.02, 20.0)
POSITIVE = st.floats(0.05, 20.0)
FORMULAS = ["value", "derivative", "convex_derivative"]


def get(name):
    """The loss, its parameters, and whether its model may be negative."""
    loss = losses.get(name)
    return loss, loss.params, loss.domain is Domain.REAL


def models(real):
    """Model values; moderate where they may be exponents."""
    return st.floats(-4.0, 4.0) if real else MODELS


def data(loss):
    return {
        Data.REAL: st.floats(-20.0, 20.0),
        Data.NONNEGATIVE: st.floats(0.0, 20.0),
        Data.COUNTS: st.integers(0, 30).map(float),
        Data.BINARY: st.sampled_from([0.0, 1.0]),
    }[loss.data]


def cells(loss, n=4001, seed=0):
    """Data and model values of many cells, in float64."""
    rng = np.random.default_rng(seed)
    real = loss.domain is Domain.REAL
    m = rng.uniform(-4, 4, n) if real else 10.0 ** rng.uniform(-2, 1.5, n)
    x = {
        Data.REAL: lambda: rng.normal(scale=5.0, size=n),
        Data.NONNEGATIVE: lambda: rng.uniform(0, 10, n) * (rng.random(n) > 0.1),
        Data.COUNTS: lambda: rng.poisson(3.0, n).astype(float),
        Data.BINARY: lambda: rng.integers(2, size=n).astype(float),
    }[loss.data]()
    return x, m


def simulated(loss, m, n, seed=0):
    return np.asarray(loss.simulate(np.full(n, m), np.random.default_rng(seed)), float)


class TestEvery:
    @every_loss
    @many
    @given(draw=st.data())
    def test_derivative_is_that_of_the_value(self, name, draw):
        loss, p, real = get(name)
        x, m = draw.draw(data(loss)), draw.draw(models(real))
        h = 1e-5 * max(abs(m), 0.01)
        slope = (loss.value(x, m + h, p) - loss.value(x, m - h, p)) / (2 * h)
        sizes = [abs(loss.value(x, m + s, p)) for s in (h, -h)]
        rounding = 1e-15 * max(*sizes, 1.0) / h
        assert loss.derivative(x, m, p) == pytest.approx(slope, rel=1e-5, abs=4 * rounding + 1e-7)

    @every_loss
    @pytest.mark.parametrize("formula", FORMULAS)
    @pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 3e-5)])
    def test_compiled_equals_interpreted(self, name, formula, dtype, rtol):
        loss, p, _ = get(name)
        if formula == "convex_derivative" and loss.jensen_mirror is None:
            pytest.skip("no Jensen steps")
        x, m = (a.astype(dtype) for a in cells(loss))
        narrow_p = tuple(np.dtype(dtype).type(v) for v in p)
        scalar = getattr(loss, formula)
        expected = np.array([scalar(a, b, p) for a, b in zip(x.tolist(), m.tolist(), strict=True)])
        if formula == "value":
            total = loss.value_block(dtype)(x, m, narrow_p)
            assert total == pytest.approx(expected.sum(), rel=rtol, abs=rtol * abs(expected).sum())
            return
        out = np.empty_like(x)
        block = loss.derivative_block if formula == "derivative" else loss.convex_block
        block(dtype)(x, m, narrow_p, out)
        # Where the two terms of a derivative cancel, they leave the rounding of the larger.
        largest = np.abs(expected) + np.array([abs(scalar(0.0, b, p)) for b in m.tolist()])
        assert (np.abs(out - expected) <= rtol * largest + 1e-30).all()

    @every_loss
    @many
    @given(draw=st.data())
    def test_mean_and_link_are_inverse(self, name, draw):
        loss, p, real = get(name)
        m = draw.draw(models(real))
        mean = float(loss.mean(np.array(m), p))
        assert loss.link(mean) == pytest.approx(m, rel=1e-9, abs=1e-12)
        assert float(loss.mean(np.array(loss.link(mean)), p)) == pytest.approx(mean, rel=1e-12)

    @pytest.mark.parametrize("name", [n for n in LOSSES if n != "rayleigh"])
    @many
    @given(draw=st.data())
    def test_a_cell_is_fitted_best_by_its_own_value(self, name, draw):
        # The rayleigh loss is left out: its best fit is a mean square, not a mean.
        loss, p, real = get(name)
        x = draw.draw(st.floats(0.02, 0.98) if loss.data is Data.BINARY else POSITIVE)

        def value(m):
            if loss.data is Data.BINARY:  # x is how often the answer is yes
                return x * loss.value(1.0, m, p) + (1 - x) * loss.value(0.0, m, p)
            return loss.value(x, m, p)

        best = value(loss.link(x))
        assert value(draw.draw(models(real))) >= best - 1e-7 * max(1.0, abs(best))

    @every_distribution
    @pytest.mark.parametrize("m", [0.3, 2.0])
    def test_data_of_a_model_is_fitted_best_by_that_model(self, name, m):
        loss, p, _ = get(name)
        x = simulated(loss, m, 40_000)
        scores = np.array([loss.derivative(a, m, p) for a in x.tolist()])
        assert abs(scores.mean()) < 5 * scores.std() / np.sqrt(scores.size)

    @every_distribution
    @pytest.mark.parametrize("m", [0.3, 2.0])
    def test_simulated_data_has_its_mean_and_support(self, name, m):
        loss, p, _ = get(name)
        x = simulated(loss, m, 40_000)
        expected = float(loss.mean(np.array(m), p))
        assert abs(x.mean() - expected) < 5 * x.std() / np.sqrt(x.size)
        as_storage(x.reshape(200, 200)).check(loss)
        if loss.data in (Data.COUNTS, Data.BINARY):
            np.testing.assert_array_equal(x, np.round(x))

    @every_distribution
    def test_simulation_uses_the_generator_it_is_given(self, name):
        loss = losses.get(name)
        one, again, other = (simulated(loss, 1.5, 50, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, again)
        assert (one != other).any()

    @every_loss
    def test_it_is_convex_if_it_says_so(self, name):
        loss, _, real = get(name)
        m = np.linspace(-4.0, 4.0, 161) if real else np.geomspace(1e-3, 20.0, 161)
        at = {Data.BINARY: [0.0, 1.0], Data.REAL: [-7.0, 0.3]}.get(loss.data, [0.0, 0.3, 9.0])
        rises = [np.diff(loss.slopes_at(x, m)) for x in at]
        sizes = [np.abs(loss.slopes_at(x, m)).max() for x in at]
        falls = any((r < -1e-9 * s).any() for r, s in zip(rises, sizes, strict=True))
        assert loss.convex is not falls

    @pytest.mark.parametrize("name", [n for n in LOSSES if losses.get(n).convex])
    @pytest.mark.parametrize("stiffness", [0.05, 3.0])
    def test_its_proximal_map_is_a_minimum(self, name, stiffness):
        loss, _, real = get(name)
        x, m = cells(loss, 200)
        v = m + np.random.default_rng(1).normal(scale=2.0, size=x.size)
        best = loss.proximal(x, v, np.full_like(x, stiffness))
        assert real or (best >= 0).all()

        def cost(m):
            return loss.values_at(x, m) + 0.5 * stiffness * (m - v) ** 2

        for step in (1e-3, 0.3, -1e-3, -0.3):
            other = best + step * np.maximum(np.abs(best), 1e-2)
            other = other if real else np.maximum(other, 0.0)
            assert (cost(best) <= cost(other) + 1e-9 * (1.0 + np.abs(cost(best)))).all()

    @every_loss
    def test_its_name_reads_back(self, name):
        loss = losses.get(name)
        assert losses.get(str(loss)) == loss

    @every_loss
    def test_zero_models_and_zero_data_are_finite(self, name):
        loss, p, _ = get(name)
        assert math.isfinite(loss.value(0.0, 0.0, p))
        assert math.isfinite(loss.derivative(0.0, 0.0, p))
        assert math.isfinite(loss.derivative(1.0, 0.0, p))


@pytest.mark.slow
def test_single_precision_is_not_widened():
    real = types.float32
    widened = []
    for loss in map(losses.get, LOSSES):
        for formula in FORMULAS if loss.jensen_mirror else FORMULAS[:2]:
            scalar = inline(getattr(type(loss), formula), np.float32)
            scalar.compile((real, real, types.UniTuple(real, 2)))
            if scalar.nopython_signatures[0].return_type != real:
                widened.append(f"{loss}.{formula}")
    assert not widened


@pytest.mark.parametrize(("beta", "name"), [(0, "gamma"), (1, "poisson"), (2, "gaussian")])
@many
@given(x=st.floats(0.0, 20.0), m=MODELS, other=MODELS)
def test_beta_includes_other_losses(beta, name, x, m, other):
    one, two = losses.get(f"beta({beta})"), losses.get(name)
    # Up to a constant in x: differences between two models agree.
    differences = [f.value(x, m, f.params) - f.value(x, other, f.params) for f in (one, two)]
    assert differences[0] == pytest.approx(differences[1], rel=1e-6, abs=1e-6)
    assert one.derivative(x, m, one.params) == pytest.approx(
        two.derivative(x, m, two.params), rel=1e-6, abs=1e-7
    )


@many
@given(x=st.floats(0.0, 20.0), m=MODELS)
def test_alpha_includes_the_divergence_of_kullback_and_leibler(x, m):
    loss, near, poisson = (losses.get(n) for n in ("alpha(1)", "alpha(0.9999999)", "poisson"))
    slopes = [f.derivative(x, m, f.params) for f in (loss, near, poisson)]
    assert slopes[0] == pytest.approx(slopes[2], rel=1e-12, abs=1e-12)
    assert slopes[1] == pytest.approx(slopes[0], rel=1e-4, abs=1e-5)
    divergence = poisson.value(x, m, (0.0, 0.0)) - (x - x * math.log(x) if x > 0 else 0.0)
    for one in (loss, near):
        value = one.value(x, m, one.params)
        assert value == pytest.approx(divergence, rel=1e-5, abs=1e-5)


@many
@given(x=POSITIVE, m=MODELS, alpha=st.floats(-2.0, 3.0))
def test_alpha_goes_to_the_reverse_divergence_and_has_duals(x, m, alpha):
    forward, reverse = losses.Alpha(1.0), losses.Alpha(0.0)
    for other in (reverse, losses.Alpha(1e-6), losses.Alpha(-1e-6)):
        exchanged = forward.value(m, x, forward.params)
        assert other.value(x, m, other.params) == pytest.approx(exchanged, rel=1e-4, abs=1e-5)
    one, dual = losses.Alpha(alpha), losses.Alpha(1.0 - alpha)
    if min(abs(alpha), abs(1.0 - alpha)) > 1e-4:  # nearer, rounding is all that is left
        value = one.value(x, m, one.params)
        assert value == pytest.approx(dual.value(m, x, dual.params), rel=1e-6, abs=1e-5)
        assert value >= -1e-10


def test_beta_may_be_a_numpy_number():
    loss = losses.Beta(np.float64(0.5))
    assert fit(np.ones((4, 3, 2)), 1, loss, max_epochs=1, random_state=0).loss < np.inf


def test_bernoulli_logit_is_stable_far_out():
    loss, p, _ = get("bernoulli-logit")
    assert loss.value(1.0, 800.0, p) == 0.0
    assert loss.value(0.0, 800.0, p) == 800.0
    assert loss.value(1.0, -800.0, p) == 800.0
    np.testing.assert_array_equal(loss.mean(np.array([-800.0, 0.0, 800.0]), p), [0.0, 0.5, 1.0])


class TestFits:
    """What peers refuse or cannot do."""

    @pytest.mark.parametrize(
        "name", ["gamma", "rayleigh", "negative-binomial(2)", "beta(0.5)", "beta(0)", "beta(3)"]
    )
    def test_data_with_zeros_is_accepted(self, name):
        rng = np.random.default_rng(0)
        X = rng.poisson(1.5, (7, 6, 5)).astype(float)
        assert (X == 0).any()
        result = fit(X, 2, name, max_epochs=20, random_state=0)
        assert np.isfinite(result.history["loss"]).all()
        level = result.model.loss_function.link(X.mean())
        flat = [np.full((7, 1), level), np.ones((6, 1)), np.ones((5, 1))]
        assert result.loss < smartcpd.CPModel(flat, loss_function=name).loss(X)

    def test_huber_forgives_outliers(self):
        rng = np.random.default_rng(0)
        a, b, c = (rng.uniform(1, 2, n) for n in (12, 11, 10))
        truth = np.einsum("i,j,k->ijk", a, b, c)
        X = truth + 0.01 * rng.standard_normal(truth.shape)
        X[rng.random(X.shape) < 0.05] += 50.0
        given = {"n_fibers": 20, "max_epochs": 400, "random_state": 0}
        errors = [
            np.abs(decompose(X, 1, loss, **given).full() - truth).max()
            for loss in ("huber(0.1)", "gaussian")
        ]
        assert errors[0] < 0.05
        assert errors[1] > 1.0


def kl(x, m):
    return m - x * math.log(m + 1e-9)


def kl_slope(x, m):
    return 1.0 - x / (m + 1e-9)


class TestCustom:
    def test_equals_the_built_in_loss(self):
        X = np.random.default_rng(0).poisson(2.0, (8, 7, 6))
        mine = losses.custom(kl, kl_slope, domain="nonnegative", name="my kl")
        results = [
            fit(X, 2, loss, solver="smd", max_epochs=30, random_state=0)
            for loss in ("poisson", mine)
        ]
        assert results[0].loss == pytest.approx(results[1].loss, rel=1e-6)
        np.testing.assert_allclose(
            results[0].model.full(), results[1].model.full(), rtol=1e-5, atol=1e-8
        )
        assert str(results[1].model.loss_function) == "my kl"

    def test_a_lambda_with_a_closure_works_in_both_precisions(self):
        sharpness = 2.0
        loss = losses.custom(
            lambda x, m: sharpness * (x - m) * (x - m), lambda x, m: 2.0 * sharpness * (m - x)
        )
        X = np.random.default_rng(0).normal(size=(6, 5, 4))
        fits = [
            fit(X, 2, loss, max_epochs=50, tol=0, random_state=0, dtype=dtype)
            for dtype in ("float64", "float32")
        ]
        # Four times the gaussian loss.
        gaussian = fit(X, 2, "gaussian", max_epochs=50, tol=0, random_state=0)
        for result in fits:
            assert result.loss == pytest.approx(4 * gaussian.loss, rel=0.02)

    @pytest.mark.slow
    def test_two_losses_of_one_name_do_not_mix(self):
        X = np.random.default_rng(0).uniform(1, 2, (5, 4, 3))
        small = losses.custom(lambda x, m: (x - m) * (x - m), lambda x, m: 2.0 * (m - x))
        large = losses.custom(lambda x, m: 9.0 * (x - m) * (x - m), lambda x, m: 18.0 * (m - x))
        assert small.name == large.name
        values = [fit(X, 1, f, max_epochs=20, random_state=0).loss for f in (small, large)]
        assert values[1] == pytest.approx(9 * values[0], rel=0.05)

    def test_the_mean_is_applied(self):
        loss = losses.custom(
            lambda x, m: math.exp(m) - x * m,
            lambda x, m: math.exp(m) - x,
            mean=np.exp,
        )
        result = fit(np.full((4, 4), 3.0), 1, loss, max_epochs=50, random_state=0)
        np.testing.assert_allclose(result.model.full(), 3.0, rtol=0.05)

    def test_a_wrong_derivative_is_refused_with_the_point(self):
        with pytest.raises(InvalidParameterError, match=r"'mine' is wrong at x=0, m=-0\.05"):
            losses.custom(lambda x, m: (x - m) ** 2, lambda x, m: m - x, name="mine")
        with pytest.raises(InvalidParameterError, match=r"x=\d.*m=\d.*finite differences"):
            losses.custom(kl, lambda x, m: 1.0 + x / m, domain="nonnegative")

    def test_a_loss_outside_its_domain_is_refused_with_the_point(self):
        with pytest.raises(InvalidParameterError, match=r"fails at x=0, m=-0.05.*domain"):
            losses.custom(lambda x, m: m - x * math.log(m), lambda x, m: 1.0 - x / m)

    def test_a_nan_derivative_is_refused(self):
        with pytest.raises(InvalidParameterError, match="derivative"):
            losses.custom(lambda x, m: 0.5 * m * m, lambda x, m: math.nan)

    def test_an_unknown_domain_is_refused(self):
        with pytest.raises(InvalidParameterError, match=r"domain must be .* got 'positive'"):
            losses.custom(kl, kl_slope, domain="positive")

    def test_its_domain_decides_the_default_constraint(self):
        X = np.random.default_rng(0).poisson(2.0, (5, 4))
        mine = losses.custom(kl, kl_slope, domain="nonnegative")
        result = fit(X, 2, mine, max_epochs=2, random_state=0)
        assert all((A >= 0).all() for A in result.model.factors)
        with pytest.raises(ValueError, match="nonnegative"):
            fit(X, 2, mine, constraint=constraints.get("free"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beta(nan)", "Cannot read|beta"),
        ("beta", r"form beta\(beta"),
        ("negative-binomial(0)", "r must be positive; got 0"),
        ("alpha(inf)", "alpha must be a finite number; got inf"),
        ("huber(-1)", "delta must be positive; got -1"),
        ("huber(1, 2)", r"form huber\("),
        ("poison", "Did you mean 'poisson'"),
        ("beta(", "Cannot read loss"),
        ("nonsense", "Unknown loss 'nonsense'"),
        (3, "loss must be a name or a Loss; got 3"),
    ],
)
def test_what_is_no_loss_is_refused(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        losses.get(text)


def test_a_custom_loss_that_cannot_be_compiled_is_refused_when_it_is_built():
    def helper(m):
        return m * m

    for value in ("a name", lambda x, m: helper(m)):
        with pytest.raises(InvalidParameterError, match="loss 'mine'"):
            losses.custom(value, lambda x, m: 2.0 * m, name="mine")


def test_every_loss_can_be_had_without_knowing_its_parameters():
    for name, cls in losses.registry.classes.items():
        assert losses.get(cls.spelled or name).name == name


@pytest.mark.parametrize(
    "x",
    [
        np.array([[3.0, 0.0], [1.0, 3.0]]),
        np.array([2, 2, 65535], dtype=np.int64),
        np.array([0.5, 0.0, 0.5]),
        np.array([-1.0, 2.0]),
        np.array([65536.0, 1.0]),
        np.array([np.nan, 1.0]),
        np.array([]),
    ],
)
def test_distinct_values_are_those_of_numpy(x):
    values, which = distinct(x)
    expected, _ = np.unique(x, return_inverse=True)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(values[which], x)
    assert values.dtype == x.dtype
