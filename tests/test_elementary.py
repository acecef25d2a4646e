"""exp and log: compiled, as exact as NumPy's; interpreted, those of the standard library."""

import math

import numba
import numpy as np
import pytest

from smartcpd._kernels.elementary import exp, log, root

EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0]
both_precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])


@numba.njit
def compiled_root(x, out):
    for i in range(x.size):
        out[i] = root(x[i])


@numba.njit
def compiled_exp(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


@numba.njit
def compiled_log(x, out):
    for i in range(x.size):
        out[i] = log(x[i])


def applied(compiled, x):
    out = np.empty_like(x)
    compiled(x, out)
    return out


def worst_ulp(got, x, exact):
    """The largest error, in units of the last place of the true result."""
    true = exact(x.astype(np.longdouble))
    spacing = np.spacing(np.abs(true).astype(x.dtype)).astype(np.longdouble)
    return float(np.max(np.abs(got - true) / spacing))


def many_numbers(dtype, lowest, highest):
    """Positive numbers of every magnitude between two powers of two, their ends included."""
    rng = np.random.default_rng(0)
    powers = np.repeat(np.arange(lowest, highest), 40)
    x = np.ldexp(rng.uniform(1.0, 2.0, powers.size), powers).astype(dtype)
    ends = np.ldexp(np.ones(highest - lowest + 1), np.arange(lowest, highest + 1)).astype(dtype)
    return np.concatenate([x[x < ends[-1]], ends, np.nextafter(ends[:-1], dtype(np.inf))])


class TestExp:
    @pytest.mark.parametrize(
        ("dtype", "low", "high"), [("float32", -87, 88), ("float64", -708, 709)]
    )
    def test_within_two_ulp(self, dtype, low, high):
        rng = np.random.default_rng(0)
        sizes = 10.0 ** rng.uniform(-30, 0, 20_000)
        x = np.concatenate([rng.uniform(low, high, 200_000), sizes, -sizes, [low, high, 0.0]])
        x = x.astype(dtype)
        assert worst_ulp(applied(compiled_exp, x), x, np.exp) <= 2

    @both_precisions
    def test_edges(self, dtype):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype)
        expected = [1.0, 1.0, np.inf, 0.0, np.nan, np.inf, 0.0]
        np.testing.assert_array_equal(applied(compiled_exp, x), expected)

    def test_never_falls(self):
        x = np.sort(np.random.default_rng(0).uniform(-100, 100, 100_000)).astype("float32")
        y = applied(compiled_exp, x)
        # Neighbouring results may swap by their rounding, 2 units in the last place.
        assert (y[1:] >= y[:-1] * (1 - 4 * np.finfo("float32").eps)).all()


class TestLog:
    @pytest.mark.parametrize(
        ("dtype", "lowest", "highest"), [(np.float32, -126, 126), (np.float64, -1022, 1022)]
    )
    def test_within_two_ulp(self, dtype, lowest, highest):
        x = many_numbers(dtype, lowest, highest)
        assert worst_ulp(applied(compiled_log, x), x, np.log) <= 2

    @both_precisions
    def test_within_two_ulp_around_one(self, dtype):
        steps = 10.0 ** np.random.default_rng(0).uniform(-16, -0.3, 20_000)
        x = np.concatenate([1 + steps, 1 - steps]).astype(dtype)
        x = x[x != 1]
        assert worst_ulp(applied(compiled_log, x), x, np.log) <= 2

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_up_to_the_largest_number(self, dtype):
        largest = np.finfo(dtype).max
        x = np.array([largest / 2, np.nextafter(largest, dtype(0)), largest], dtype)
        assert worst_ulp(applied(compiled_log, x), x, np.log) <= 2

    @both_precisions
    def test_edges(self, dtype):
        x = np.array(EDGES, dtype)
        expected = [-np.inf, -np.inf, np.inf, np.nan, np.nan, np.nan]
        np.testing.assert_array_equal(applied(compiled_log, x), expected)


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        "float32",
    ],
)
@pytest.mark.parametrize("function", [exp, log])
def test_the_result_has_the_precision_of_the_argument(function, dtype):
    scalar = numba.njit(lambda x: function(x))
    scalar(np.dtype(dtype).type(1.5))
    assert scalar.nopython_signatures[0].return_type == numba.from_dtype(np.dtype(dtype))


@pytest.mark.parametrize("x", [-745.0, -3.25, 0.0, 1e-9, 1.0, 300.0])
def test_interpreted_exp_is_that_of_math(x):
    assert exp(x) == math.exp(x)


@pytest.mark.parametrize("x", [5e-324, 1e-9, 0.5, 1.0, 1e308])
def test_interpreted_log_is_that_of_math(x):
    assert log(x) == math.log(x)


def test_interpreted_edges_do_not_raise():
    assert exp(1e4) == math.inf
    assert exp(-math.inf) == 0.0
    assert log(0.0) == -math.inf
    assert math.isnan(log(-1.0))
    assert math.isnan(log(math.nan))
    assert log(math.inf) == math.inf


def test_roots():
    x = np.append(np.ldexp(np.linspace(1.0, 2.0, 601), np.arange(-300, 301)), 0.0)
    np.testing.assert_allclose(applied(compiled_root, x), np.sqrt(x), rtol=1e-11)
    assert np.isnan(applied(compiled_root, np.array([np.nan]))[0])
