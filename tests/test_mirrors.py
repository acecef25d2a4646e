"""Mirror maps: the contracts between phi, its derivative, the inverse and the step."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types
from pieces import MIRRORS

from smartcpd import mirrors
from smartcpd._kernels.compiling import inline
from smartcpd.errors import InvalidParameterError
from smartcpd.mirrors.base import MAX_GROWTH

every_map = pytest.mark.parametrize("name", [*MIRRORS, "power(-2)", "power(2)"])
both_precisions = pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-9), ("float32", 1e-3)])
many = settings(max_examples=30, deadline=None, derandomize=True)
ENTRIES = st.floats(-3, 3).map(lambda power: 10.0**power)
# From a hundredth of the growth allowed to a fall by a million.
RATIOS = st.floats(-6, math.log10(MAX_GROWTH) - 0.01).map(lambda power: 10.0**power)


def get(name):
    phi = mirrors.get(name)
    return phi, phi.params


def compiled_move(phi, a, v, dtype):
    """The compiled step from a by v in the dual, entry by entry."""
    a, v = np.array(a, dtype), np.array(v, dtype)
    p = tuple(np.dtype(dtype).type(x) for x in phi.params)
    phi.move_block(dtype)(a, v, np.ones_like(a), p)
    return a


def transformed(block, phi, a, dtype):
    out = np.empty(len(a), dtype)
    p = tuple(np.dtype(dtype).type(x) for x in phi.params)
    block(dtype)(np.array(a, dtype), p, out)
    return out


@every_map
@many
@given(a=ENTRIES)
def test_to_primal_inverts_to_dual(name, a):
    phi, p = get(name)
    assert phi.to_primal(phi.to_dual(a, p), p) == pytest.approx(a, rel=1e-9)


@every_map
@both_precisions
def test_compiled_to_primal_inverts_to_dual(name, dtype, rtol):
    phi = mirrors.get(name)
    a = np.logspace(-2, 2, 101).astype(dtype)
    dual = transformed(phi.to_dual_block, phi, a, dtype)
    np.testing.assert_allclose(transformed(phi.to_primal_block, phi, dual, dtype), a, rtol=rtol)


@every_map
@many
@given(a=ENTRIES)
def test_to_dual_is_the_derivative_of_the_potential(name, a):
    phi, p = get(name)
    h = 1e-4 * a
    slope = (phi.potential(a + h, p) - phi.potential(a - h, p)) / (2 * h)
    rounding = 1e-15 * abs(phi.potential(a, p)) / h
    assert phi.to_dual(a, p) == pytest.approx(slope, rel=1e-6, abs=10 * rounding)


@every_map
@many
@given(a=ENTRIES, b=ENTRIES)
def test_to_dual_rises(name, a, b):
    phi, p = get(name)
    low, high = sorted([a, b])
    assert phi.to_dual(low, p) <= phi.to_dual(high, p)


@every_map
@many
@given(a=ENTRIES, ratio=RATIOS)
def test_move_is_a_step_in_the_dual(name, a, ratio):
    phi, p = get(name)
    target = a * ratio
    v = phi.to_dual(a, p) - phi.to_dual(target, p)
    assert phi.move(a, v, p) == pytest.approx(target, rel=1e-6, abs=1e-6 * a)


@every_map
@both_precisions
def test_compiled_move_is_a_step_in_the_dual(name, dtype, rtol):
    phi, p = get(name)
    a = np.repeat([0.1, 1.0, 7.0], 20)
    target = a * np.tile(np.logspace(-1, 1, 20), 3)
    v = [phi.to_dual(s, p) - phi.to_dual(t, p) for s, t in zip(a, target, strict=True)]
    np.testing.assert_allclose(compiled_move(phi, a, v, dtype), target, rtol=rtol, atol=rtol)


@every_map
@both_precisions
def test_no_step_moves_nothing(name, dtype, rtol):
    phi = mirrors.get(name)
    a = np.array([max(phi.floor, 1e-9), 1e-3, 1.0, 1e3], dtype)
    np.testing.assert_allclose(compiled_move(phi, a, np.zeros(4), dtype), a, rtol=rtol)


@pytest.mark.parametrize("name", [n for n in MIRRORS if n != "quadratic"])
@both_precisions
@many
@given(a=ENTRIES, v=st.floats(-8, 20).map(lambda power: 10.0**power))
def test_a_step_goes_the_right_way_however_long(name, dtype, rtol, a, v):
    phi = mirrors.get(name)
    down, up = compiled_move(phi, [a, a], [v, -v], dtype)
    # Beyond the range of the dual an entry grows by the most allowed; it never turns to zero.
    slack = 1 + 1e-4
    assert a <= up * slack
    assert up <= a * phi.max_growth * slack
    assert 0 <= down <= a * slack


@pytest.mark.parametrize("name", ["burg", "power(-1)", "power(-2)"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_beyond_the_range_an_entry_grows_by_the_most_allowed(name, dtype):
    phi, p = get(name)
    a = np.array([0.01, 1.0, 30.0])
    # The dual of these maps is negative; a step of twice its size would end above 0.
    v = [2 * phi.to_dual(s, p) for s in a]
    np.testing.assert_allclose(compiled_move(phi, a, v, dtype), MAX_GROWTH * a, rtol=1e-5)


@pytest.mark.parametrize("name", [*MIRRORS, "power(-4)", "power(6)"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@many
@given(a=st.floats(-9, 6).map(lambda power: 10.0**power), v=st.floats(-1e30, 1e30))
def test_never_nan(name, dtype, a, v):
    phi = mirrors.get(name)
    assert not np.isnan(compiled_move(phi, [a, phi.floor], [v, v], dtype)).any()


@every_map
@many
@given(a=ENTRIES, b=ENTRIES)
def test_bregman_divergence_is_positive_but_between_equals(name, a, b):
    phi, p = get(name)
    divergence = phi.bregman(np.array([a, a]), np.array([b, a]))
    terms = abs(phi.potential(a, p)) + abs(phi.potential(b, p)) + abs(phi.to_dual(b, p) * (a - b))
    assert divergence[0] >= -1e-14 * terms
    assert abs(divergence[1]) <= 1e-14 * terms
    if max(a, b) > 1.01 * min(a, b):
        assert divergence[0] > 0


@every_map
@pytest.mark.parametrize("a", [0.1, 1.0, 12.0])
def test_unit_changes_an_entry_by_about_its_size(name, a):
    phi, p = get(name)
    up, down = phi.move(a, -phi.unit(a), p), phi.move(a, phi.unit(a), p)
    assert 0.3 * a < max(up - a, a - down) < 2 * a
    if phi.dual_ends:  # no end is near: the entry is not even doubled or halved
        assert a / 2 < down < a < up < 2 * a


def test_single_precision_is_not_widened():
    real, widened = types.float32, []
    for phi in map(mirrors.get, MIRRORS):
        for formula, arguments in (("to_dual", 1), ("to_primal", 1), ("move", 2)):
            scalar = inline(getattr(type(phi), formula), np.float32)
            scalar.compile((*[real] * arguments, types.UniTuple(real, 2)))
            if scalar.nopython_signatures[0].return_type != real:
                widened.append(f"{phi}.{formula}")
    assert not widened


@pytest.mark.parametrize("c", [0, 0.0, 0.5, 1, 1.0])
def test_power_refuses_what_is_not_convex(c):
    with pytest.raises(InvalidParameterError, match=rf"c > 1 or c < 0; got c={c}.*Use"):
        mirrors.get(f"power({c})")


def test_power_refuses_nan():
    with pytest.raises(InvalidParameterError, match="c > 1 or c < 0"):
        mirrors.Power(math.nan)
