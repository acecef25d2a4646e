"""Step rules: what they promise about single steps, and the bound behind Jensen's."""

import numpy as np
import pytest
from full_batch import example, full_step, unfolded
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types
from pieces import LOSSES, STEPS

from smartcpd import losses, mirrors, steps
from smartcpd._fitting.model import CPModel
from smartcpd._kernels.compiling import inline
from smartcpd.errors import InvalidParameterError
from smartcpd.steps import Probe

many = settings(max_examples=30, deadline=None, derandomize=True)
GRADIENTS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)
PROBE = Probe(gradient_square=4.0, unit=3.0)
JENSEN = [name for name in LOSSES if losses.get(name).jensen_mirror]
BETWEEN = [name for name in JENSEN if name.startswith("beta") and 1 < losses.get(name).beta < 2]


def real(name):
    return losses.get(name).domain is losses.Domain.REAL


def scales(step, gradients, probe=PROBE):
    """Gamma at each of an entry's updates."""
    p, s, found = step.params(probe), 0.0, []
    for k, g in enumerate(gradients):
        gamma, s = step.gamma(g, 0.0, 0.0, s, k, p)
        found.append(gamma)
    return np.array(found)


class TestAdagrad:
    @many
    @given(gradients=GRADIENTS, eta=st.floats(1e-3, 10), b=st.floats(0, 10))
    def test_no_step_exceeds_eta_in_the_dual(self, gradients, eta, b):
        gamma = scales(steps.get(f"adagrad({eta}, {b})"), gradients)
        moving = gamma > 0
        v = np.array(gradients)[moving] / gamma[moving]
        assert (np.abs(v) <= eta * (1 + 1e-12)).all()

    @many
    @given(gradients=GRADIENTS)
    def test_scaling_never_falls(self, gradients):
        assert (np.diff(scales(steps.get("adagrad"), gradients)) >= 0).all()

    @many
    @given(gradients=GRADIENTS, factor=st.floats(1e-3, 1e3))
    def test_default_steps_do_not_depend_on_the_unit_of_the_loss(self, gradients, factor):
        step = steps.get("adagrad")
        v = np.array(gradients) / scales(step, gradients)
        scaled = [factor * g for g in gradients]
        probe = Probe(PROBE.gradient_square * factor**2, PROBE.unit)
        np.testing.assert_allclose(scaled / scales(step, scaled, probe), v, rtol=1e-9, atol=1e-150)

    def test_a_repeated_gradient_gives_steps_as_one_over_the_root(self):
        v = 1 / scales(steps.get("adagrad(1, 0)"), [1.0] * 100)
        np.testing.assert_allclose(v, 1 / np.sqrt(np.arange(1, 101)))

    @many
    @given(gradients=GRADIENTS)
    def test_as_printed_the_sum_is_that_of_the_past(self, gradients):
        past = steps.Adagrad._gamma_of_the_past
        s, found = 0.0, []
        for g in gradients:
            gamma, s = past(g, 0.0, 0.0, s, 0.0, (1.0, 0.5))
            found.append(gamma)
        # One update later, the rule with the current gradient has seen what this one sees.
        with_current = scales(steps.get("adagrad(1, 0.5)"), gradients)
        np.testing.assert_allclose(found, [0.5**0.5, *with_current[:-1]])


class TestAdam:
    def test_steps_fall_as_one_over_the_root_under_a_repeated_gradient(self):
        v = 1 / scales(steps.get("adam(1, 0)"), [1.0] * 100)
        np.testing.assert_allclose(v, 1 / np.sqrt(np.arange(1, 101)))

    def test_the_start_is_forgotten(self):
        gradients = [1e3] + [1.0] * 3000
        v = [1 / scales(steps.get(f"{name}(1, 0)"), gradients)[-1] for name in ("adam", "adagrad")]
        assert v[0] > 5 * v[1]


class TestConstant:
    def test_the_step_size_is_what_was_asked_for(self):
        np.testing.assert_allclose(1 / scales(steps.get("constant(0.3)"), [1.0, -5.0]), 0.3)

    def test_by_default_a_tenth_of_an_entry(self):
        typical = PROBE.gradient_square**0.5
        v = typical / scales(steps.get("constant"), [typical])
        np.testing.assert_allclose(v, 0.1 * PROBE.unit)


class TestDiminishing:
    @pytest.mark.parametrize("decay", [0.51, 0.6, 0.75, 1.0])
    def test_steps_sum_to_infinity_and_their_squares_do_not(self, decay):
        sizes = 1 / scales(steps.get(f"diminishing(2, {decay})"), [1.0] * 2**14)
        octaves = [sizes[2**k : 2 ** (k + 1)] for k in range(6, 14)]
        sums = np.array([o.sum() for o in octaves])
        squares = np.array([(o**2).sum() for o in octaves])
        # Every doubling of the time adds as much as the last, or more; of squares, ever less.
        assert (sums[1:] > 0.98 * sums[:-1]).all()
        ratios = squares[1:] / squares[:-1]
        assert (ratios < 0.99).all()

    def test_the_first_step_is_eta(self):
        assert 1 / scales(steps.get("diminishing(2)"), [1.0])[0] == pytest.approx(2)
        first = [scales(steps.get(name), [1.0])[0] for name in ("diminishing", "constant")]
        assert first[0] == pytest.approx(first[1])


def mean_loss(loss, X, factors):
    return CPModel(factors, loss_function=loss).loss(X)


class Majoriser:
    """Jensen's upper bound of the loss around the factors, as a function of one of them."""

    def __init__(self, loss, X, factors, mode):
        self.phi = mirrors.get(loss.jensen_mirror)
        self.A = factors[mode]
        X_n, M, H = unfolded(X, factors, mode)
        self.value = mean_loss(loss, X, factors)
        self.G = self._product(loss.derivative_block, loss, X_n, M, H)
        C = self._product(loss.convex_block, loss, X_n, M, H)
        jensen = steps.get("jensen")
        self.Gamma = np.empty_like(self.A)
        for i, a in np.ndenumerate(self.A):
            d = self.phi.to_dual(a, self.phi.params)
            self.Gamma[i], _ = jensen.gamma(self.G[i], C[i], d, 0.0, 0, (0.0, 0.0))

    @staticmethod
    def _product(block, loss, X_n, M, H):
        out = np.empty(M.size)
        x, m = np.ascontiguousarray(X_n).reshape(-1), np.ascontiguousarray(M).reshape(-1)
        block("float64")(x, m, loss.params, out)
        return out.reshape(M.shape) @ H / M.size

    def __call__(self, B):
        distance = self.phi.bregman(B, self.A)
        return self.value + np.sum(self.G * (B - self.A)) + np.sum(self.Gamma * distance)


class TestJensen:
    @pytest.mark.parametrize("name", [n for n in JENSEN if n not in BETWEEN])
    @pytest.mark.parametrize("order", [2, 3])
    def test_the_bound_lies_above_the_loss_and_touches_it(self, name, order):
        loss = losses.get(name)
        rng = np.random.default_rng(1)
        for mode in range(order):
            X, factors = example(loss, order, seed=mode)
            bound = Majoriser(loss, X, factors, mode)
            assert (bound.Gamma >= 0).all()
            assert bound(factors[mode]) == pytest.approx(mean_loss(loss, X, factors))
            for size in np.repeat([0.01, 0.1, 1.0, 3.0], 10):
                B = factors[mode] * np.exp(size * rng.standard_normal(factors[mode].shape))
                others = [B if k == mode else A for k, A in enumerate(factors)]
                value = mean_loss(loss, X, others)
                assert bound(B) >= value - 1e-7 * max(1.0, abs(value))

    @pytest.mark.parametrize("name", JENSEN)
    @pytest.mark.parametrize("order", [2, 3, 4])
    def test_a_full_step_never_increases_the_loss(self, name, order):
        loss = losses.get(name)
        X, factors = example(loss, order, seed=order)
        if loss.data is losses.Data.REAL:
            X = np.abs(X)
        values = [mean_loss(loss, X, factors)]
        for mode in [*range(order)] * 2:
            factors = full_step(X, factors, mode, name, step="jensen", constraint="nonnegative")
            values.append(mean_loss(loss, X, factors))
        assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()
        assert values[-1] < values[0]

    @pytest.mark.parametrize("name", JENSEN)
    def test_a_full_step_never_increases_the_loss_of_signed_or_zero_data(self, name):
        loss = losses.get(name)
        X, factors = example(loss, seed=5)
        if loss.data is losses.Data.REAL:
            X -= 1.0
        X[0] = 0.0
        X[:, 1, :] = min(X.min(), 0.0)
        values = [mean_loss(loss, X, factors)]
        for mode in [0, 1, 2] * 3:
            factors = full_step(X, factors, mode, name, step="jensen", constraint="nonnegative")
            assert all(np.isfinite(A).all() for A in factors)
            values.append(mean_loss(loss, X, factors))
        assert (np.diff(values) <= 1e-9 * np.maximum(1.0, np.abs(values[:-1]))).all()


def test_single_precision_is_not_widened():
    real, widened = types.float32, []
    for step in map(steps.get, STEPS):
        if type(step).gamma is steps.Step.gamma:
            continue  # mixed steps are made of others
        scalar = inline(type(step).gamma, np.float32)
        scalar.compile((*[real] * 5, types.UniTuple(real, 2)))
        if scalar.nopython_signatures[0].return_type != types.UniTuple(real, 2):
            widened.append(str(step))
    assert not widened


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("constant(0)", "eta must be positive; got 0"),
        ("constant(-1)", "eta must be positive; got -1"),
        ("diminishing(1, 0.5)", "decay must be above 0.5 and at most 1; got 0.5"),
        ("diminishing(1, 1.5)", "decay .* got 1.5"),
        ("diminishing(0)", "eta must be positive; got 0"),
        ("adagrad(-1)", "eta must be positive; got -1"),
        ("adagrad(1, -1)", "b must not be negative; got -1"),
        ("adagrad(1, 0, 1)", "past_only needs an eta and a positive b"),
        ("adam(-1)", "eta must be positive; got -1"),
        ("mixed(0)", "switch must be positive; got 0"),
        ("jensen(1)", "does not fit its form"),
        ("adagard", "Did you mean 'adagrad'"),
    ],
)
def test_nonsense_is_refused(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        steps.get(text)
