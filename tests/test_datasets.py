"""Simulated data: its statistics, its types, its memory and its seeds."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartcpd import datasets
from smartcpd._common.model_cells import slabs
from smartcpd._fitting.model import CPModel
from smartcpd.datasets import planted
from smartcpd.errors import InvalidParameterError

quick = settings(max_examples=25, deadline=None)
ALL = [datasets.count, datasets.binary, datasets.gamma, datasets.simplex, datasets.gaussian]
SHAPE = (40, 50, 60)


def standardised(data, mean, variance):
    """The sum of all deviations in units of its standard deviation: N(0, 1) if the model holds."""
    return float((data - mean).sum() / np.sqrt(variance.sum()))


class TestEvery:
    @pytest.mark.parametrize("make", ALL)
    @quick
    @given(shape=st.lists(st.integers(1, 6), min_size=2, max_size=5), rank=st.integers(1, 4))
    def test_shapes_of_any_order(self, make, shape, rank):
        data, factors = make(shape, rank, random_state=0)
        assert data.shape == tuple(shape)
        assert [A.shape for A in factors] == [(size, rank) for size in shape]
        assert np.isfinite(data).all()

    @pytest.mark.parametrize("make", ALL)
    def test_seeds(self, make):
        one, again = (make((5, 6, 7), 2, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(one.data, again.data)
        for A, B in zip(one.factors, again.factors, strict=True):
            np.testing.assert_array_equal(A, B)
        assert (make((5, 6, 7), 2, random_state=4).factors[0] != one.factors[0]).any()
        generator = make((5, 6, 7), 2, random_state=np.random.default_rng(3))
        np.testing.assert_array_equal(generator.data, one.data)

    @pytest.mark.parametrize("make", ALL)
    def test_the_global_random_state_is_left_alone(self, make):
        before = np.random.get_state()[1].tobytes()  # noqa: NPY002
        make((5, 6, 7), 2)
        assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002

    @pytest.mark.parametrize("make", ALL)
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"rank": 0}, "rank .* got 0"),
            ({"rank": 2.5}, "rank .* got 2.5"),
            ({"shape": (3, 0)}, r"shape .* got \(3, 0\)"),
            ({"shape": (3,)}, r"shape .* two modes or more.* got \(3,\)"),
            ({"shape": 10}, "shape .* got 10"),
            ({"shape": (3, 2.5)}, "shape .* got"),
            ({"random_state": -1}, "random_state .* got -1"),
            ({"random_state": "seed"}, "random_state .* got 'seed'"),
        ],
    )
    def test_refuses_nonsense(self, make, change, message):
        with pytest.raises(InvalidParameterError, match=message):
            make(**({"shape": (3, 4), "rank": 2} | change))

    @pytest.mark.parametrize(
        ("make", "change"),
        [
            (datasets.count, {"a_max": 0.0}),
            (datasets.count, {"a_max": math.inf}),
            (datasets.binary, {"outliers": 1.5}),
            (datasets.gamma, {"snr": math.nan}),
            (datasets.gaussian, {"snr": math.inf}),
            (datasets.simplex, {"events": 0}),
        ],
    )
    def test_refuses_nonsense_of_its_own(self, make, change):
        ((name, _),) = change.items()
        with pytest.raises(InvalidParameterError, match=name):
            make((3, 4), 2, **change)


class TestSpikyFactors:
    def test_a_known_share_of_each_column_is_redrawn(self):
        small = datasets.count((1000, 40), 5, outliers=0.0, random_state=0).factors[0]
        assert small.min() >= 0
        assert small.max() <= 0.5
        large = datasets.count((1000, 40), 5, outliers=0.05, random_state=0).factors[0]
        beyond = (large > 0.5).sum(axis=0)
        # Nine tenths of the 50 redrawn entries exceed a_max; four standard deviations.
        assert (beyond <= 50).all()
        assert (beyond >= 45 - 4 * np.sqrt(50 * 0.9 * 0.1)).all()
        assert 4.5 < large.max() <= 5.0

    def test_scale(self):
        factors = datasets.binary((1000, 40), 5, a_max=2.0, outliers=0.0, random_state=0).factors
        assert factors[0].mean() == pytest.approx(1.0, abs=4 * 2.0 / np.sqrt(12 * 5000))


class TestCount:
    def test_poisson_moments(self):
        data, factors = datasets.count(SHAPE, 5, random_state=0)
        M = CPModel(factors).full()
        assert abs(standardised(data, M, M)) < 4
        # E (x - m)² = m, with variance m + 2 m².
        assert abs(standardised((data - M) ** 2, M, M + 2 * M**2)) < 4

    @pytest.mark.parametrize(
        ("a_max", "dtype"), [(0.1, np.uint8), (5.0, np.uint16), (300.0, np.uint32)]
    )
    def test_smallest_type_that_holds_the_data(self, a_max, dtype):
        data, _ = datasets.count((20, 20, 20), 3, a_max=a_max, random_state=0)
        assert data.dtype == dtype == np.min_scalar_type(int(data.max()))

    def test_widening_keeps_what_was_drawn(self, monkeypatch):
        class Exact:
            def simulate(self, m, rng):
                return m.astype(np.int64)

        # Whole numbers, growing along the first mode, so that the type widens on the way.
        factors = [np.arange(40.0)[:, None] * 10.0, np.arange(1.0, 9.0)[:, None]]
        monkeypatch.setattr(planted, "slabs", lambda factors: slabs(factors, cells=16))
        data = planted._drawn_integers(Exact(), factors, np.random.default_rng(0))
        assert data.dtype == np.uint16
        np.testing.assert_array_equal(data, np.outer(np.arange(40) * 10, np.arange(1, 9)))


class TestBinary:
    def test_bernoulli_moments(self):
        data, factors = datasets.binary(SHAPE, 5, random_state=0)
        P = CPModel(factors, loss_function="bernoulli-odds").full()
        assert set(np.unique(data)) == {0, 1}
        assert data.dtype == np.uint8
        assert abs(standardised(data, P, P * (1 - P))) < 4
        # Weighted by P: a probability that is right only on average would fail.
        assert abs(standardised(data * P, P * P, P**2 * P * (1 - P))) < 4

    @pytest.mark.parametrize(("a_max", "ones"), [(0.2, 0.05), (0.3, 0.15), (0.4, 0.28), (0.5, 0.4)])
    def test_the_papers_shares_of_ones(self, a_max, ones):
        data, _ = datasets.binary(a_max=a_max, random_state=0)
        assert data.mean() == pytest.approx(ones, abs=0.02)

    def test_memory_stays_near_that_of_the_data(self):
        shape = (300, 200, 250)
        tracemalloc.start()
        data, _ = datasets.binary(shape, 5, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # A float64 tensor of this size alone would be eight times the data.
        assert peak < 5 * data.nbytes


class TestGamma:
    def test_noise_moments(self):
        data, factors = datasets.gamma(SHAPE, 5, snr=10.0, random_state=0)
        noise = data / CPModel(factors).full()
        # Gamma(k, 1/k): variance 1/k, fourth central moment 3/k² + 6/k³.
        k = 10.0
        assert abs(standardised(noise, 1.0, np.full(noise.size, 1 / k))) < 4
        spread = np.full(noise.size, 2 / k**2 + 6 / k**3)
        assert abs(standardised((noise - 1) ** 2, 1 / k, spread)) < 4
        assert data.min() > 0
        assert all(A.min() >= 0 and A.max() <= 1 for A in factors)


class TestSimplex:
    def test_noiseless_data_is_the_model(self):
        data, factors = datasets.simplex(SHAPE, 4, random_state=0)
        np.testing.assert_allclose(data, CPModel(factors).full(), rtol=1e-12)
        for A in factors:
            np.testing.assert_allclose(A.sum(axis=0), 1.0)
        assert data.sum() == pytest.approx(4.0)

    def test_events_estimate_the_model(self):
        events = 1e5
        data, factors = datasets.simplex(SHAPE, 4, events=events, random_state=0)
        counts = data * events / 4.0
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        assert abs(counts.sum() - events) < 4 * np.sqrt(events)
        M = CPModel(factors).full()
        assert abs(standardised(data * M, M * M, M**2 * M * 4.0 / events)) < 4


class TestGaussian:
    @pytest.mark.parametrize("nonnegative", [True, False])
    def test_noise_has_the_ratio_asked_for(self, nonnegative):
        data, factors = datasets.gaussian(
            SHAPE, 4, snr=15.0, nonnegative=nonnegative, random_state=0
        )
        M = CPModel(factors).full()
        noise = data - M
        ratio = (M**2).mean() / (noise**2).mean()
        # The sample variance of n normal draws has relative standard deviation sqrt(2/n).
        assert ratio == pytest.approx(10**1.5, rel=4 * np.sqrt(2 / M.size))
        assert abs(standardised(noise, 0.0, np.full(M.size, noise.var()))) < 4
        assert (min(A.min() for A in factors) >= 0) == nonnegative
