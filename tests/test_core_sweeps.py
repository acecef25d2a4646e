"""Alternating least squares on a core, several starts at once."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted import interpreted

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import offsets
from smartcpd._kernels.core_sweeps import core_sweeps
from smartcpd._strategies.compression import Starts

SHAPES = [(4, 5), (4, 3, 5), (3, 2, 4, 3), (3, 1, 2)]


def reconstructed(factors):
    letters = "abcd"[: len(factors)]
    formula = ",".join(letter + "z" for letter in letters) + "->" + letters
    return np.einsum(formula, *factors)


def planted(shape, rank, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((size, rank)) for size in shape]
    return reconstructed(factors) + noise * rng.standard_normal(shape), factors


@pytest.mark.parametrize("shape", SHAPES)
def test_residuals_are_those_of_the_factors(shape):
    core, _ = planted(shape, 2, noise=0.1)
    starts = Starts.random(core, 2, 3, np.random.default_rng(1))
    starts.sweep(7)
    for s in range(3):
        left = core - reconstructed(starts.factors_of(s))
        assert starts.residuals[s] == pytest.approx(np.vdot(left, left), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_residuals_rise_by_no_more_than_the_ridge(shape):
    core, _ = planted(shape, 2, noise=0.3)
    starts = Starts.random(core, 2, 4, np.random.default_rng(2))
    starts.sweep(1)
    for _ in range(30):
        before = starts.residuals.copy()
        starts.sweep(1)
        assert (starts.residuals <= before * (1 + 1e-6)).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
def test_compiled_equals_interpreted(shape, dtype):
    core, _ = planted(shape, 2, noise=0.1)
    rng = np.random.default_rng(3)
    starts = Starts(core.astype(dtype), rng.standard_normal((2, sum(shape), 2)).astype(dtype))
    plain = Starts(starts.core, starts.factors.copy())
    starts.sweep(4)
    interpreted(core_sweeps)(
        plain.core.reshape(-1, shape[-1]),
        np.array(shape),
        offsets(shape),
        plain.square,
        4,
        plain.factors,
        plain.before,
        plain.residuals,
        plain.momentum,
        plain.plain,
    )
    rtol = 1e-2 if dtype == "float32" else 1e-6
    np.testing.assert_allclose(starts.factors, plain.factors, rtol=rtol, atol=rtol)


def test_finds_planted_components_and_says_that_starts_agree():
    core, factors = planted((6, 7, 8), 3, noise=1e-3)
    starts = Starts.random(core, 3, 4, np.random.default_rng(4))
    starts.sweep(60)
    best = starts.best(2)
    assert best.agree()
    assert same_components(best.factors_of(0), factors)
    assert not same_components(best.factors_of(0), planted((6, 7, 8), 3, seed=9)[1])


def test_starts_do_not_depend_on_one_another():
    core, _ = planted((4, 3, 5), 2, noise=0.1)
    both = Starts.random(core, 2, 2, np.random.default_rng(5))
    alone = Starts(both.core, both.factors[1:].copy())
    both.sweep(9)
    alone.sweep(9)
    np.testing.assert_array_equal(both.factors[1], alone.factors[0])


def test_factors_that_are_not_finite_are_no_agreement():
    _, factors = planted((4, 3, 5), 2)
    broken = [np.full_like(A, np.nan) for A in factors]
    assert not same_components(factors, broken)
