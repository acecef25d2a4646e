"""Sums over slices and their derivatives, and the rows that minimise them: one storage as the
other, and as a solver that knows nothing of either."""

import numpy as np
import pytest
from pieces import LOSSES, simulated
from scipy.optimize import minimize

from smartcpd import SparseTensor, losses
from smartcpd._data.opening import as_storage
from smartcpd._kernels.bounded_rows import compiled_bounded_rows
from smartcpd._methods.row_newton import Rule, solve_rows
from smartcpd._objectives import backgrounds
from smartcpd._objectives.slices import slices_of, sparse
from smartcpd.constraints import get as constraint

SHAPE, RANK = (5, 7, 6), 3


def planted(loss, seed=0):
    """Data of a loss with some cells missing and some of another weight, and its factors."""
    rng = np.random.default_rng(seed)
    factors = [rng.uniform(0.2, 1.2, (n, RANK)) for n in SHAPE]
    found = losses.get(loss)
    X = simulated(found, np.einsum("ir,jr,kr->ijk", *factors), rng)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], p=[0.2, 0.1, 0.6, 0.1], size=SHAPE)
    return found, X, weights, factors


def as_sparse(X, weights):
    cells = np.argwhere((X != 0) | (weights != 1))
    return SparseTensor(cells, X[tuple(cells.T)], X.shape, weights=weights[tuple(cells.T)])


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_the_values(name, mode):
    loss, X, weights, factors = planted(name)
    slices = slices_of(as_storage(X, weights=weights), loss, factors, mode)
    A = factors[mode] * 1.07
    sums = slices.at(A)
    np.testing.assert_allclose(slices.values(A), sums.value)
    h = 1e-5
    for r in range(RANK):
        step = np.zeros(RANK)
        step[r] = h
        high, low = slices.at(A + step), slices.at(A - step)
        slope = (high.value - low.value) / (2 * h)
        np.testing.assert_allclose(sums.slope[:, r], slope, rtol=1e-4, atol=1e-4)
        if not name.startswith("huber"):  # whose slope has kinks
            bend = (high.slope - low.slope) / (2 * h)
            np.testing.assert_allclose(sums.bend[:, r], bend, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("name", [n for n in LOSSES if losses.get(n).allows_zeros])
def test_sparse_sums_are_dense_sums(name, mode):
    loss, X, weights, factors = planted(name)
    dense = slices_of(as_storage(X, weights=weights), loss, factors, mode)
    thin = slices_of(as_sparse(X, weights), loss, factors, mode)
    for a, b in zip(dense.at(factors[mode]), thin.at(factors[mode]), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(thin.row_totals(), dense.row_totals())


def test_unobserved_cells_add_nothing():
    loss, X, weights, factors = planted("gamma")
    seen = np.argwhere(weights > 0)
    at = tuple(seen.T)
    thin = SparseTensor(seen, X[at], SHAPE, "unobserved", weights=weights[at])
    sums = slices_of(thin, loss, factors, 1).at(factors[1])
    dense = slices_of(as_storage(X, weights=weights), loss, factors, 1).at(factors[1])
    for a, b in zip(dense, sums, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)


@pytest.mark.parametrize("way", ["hot cells", "sampled"])
def test_backgrounds_of_tensors_too_large_to_pass_over(way, monkeypatch):
    rng = np.random.default_rng(0)
    factors = [rng.uniform(0, 0.4, (n, 2)) for n in (30, 25, 20)]
    loss = losses.get("bernoulli-odds")
    X = loss.simulate(np.einsum("ir,jr,kr->ijk", *factors), rng)
    dense = slices_of(as_storage(X), loss, factors, 0).at(factors[0])
    monkeypatch.setattr(backgrounds.choice, "EXHAUSTIVE_CELLS", 0)
    if way == "sampled":
        monkeypatch.setattr(backgrounds.HotCells, "of", lambda *_: None)
        monkeypatch.setattr(sparse, "N_CELLS", 1 << 17)
    thin = slices_of(SparseTensor(np.argwhere(X), 1, X.shape), loss, factors, 0).at(factors[0])
    tolerance = 1e-3 if way == "hot cells" else 2e-2
    for a, b in zip(dense, thin, strict=True):
        assert np.abs(a - b).max() <= tolerance * np.abs(a).max()


def test_small_quadratics_within_bounds():
    rng = np.random.default_rng(0)
    n, R = 40, 4
    roots = rng.standard_normal((n, R, R))
    B = roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(R)
    G = rng.standard_normal((n, R))
    low = np.where(rng.random((n, R)) < 0.4, 0.0, -rng.random((n, R)))
    high = np.where(rng.random((n, R)) < 0.3, np.inf, rng.random((n, R)))
    D, promised = np.empty((n, R)), np.empty(n)
    compiled_bounded_rows()(G, B, low, high, D, promised)
    for g, b, lo, hi, d, gain in zip(G, B, low, high, D, promised, strict=True):
        found = minimize(
            lambda z, g=g, b=b: (g @ z + z @ b @ z / 2, g + b @ z),
            np.zeros(R),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(lo, hi, strict=True)),
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        assert ((d >= lo) & (d <= hi)).all()
        assert gain == pytest.approx(-found.fun, abs=1e-8)


def test_a_quadratic_that_falls_forever_is_reported():
    D, promised = np.empty((1, 2)), np.empty(1)
    B = np.array([[[1.0, 0.0], [0.0, -1.0]]])
    free = np.full((1, 2), np.inf)
    compiled_bounded_rows()(np.ones((1, 2)), B, -free, free, D, promised)
    assert np.isnan(promised).all()


@pytest.mark.parametrize(
    "name",
    ["simplex", "l1-ball(2)", "l2-ball(1.5)", "sparsity(0.05)", "smoothness(0.1)", "monotone"],
)
def test_rows_under_any_constraint_are_stationary(name):
    loss, X, weights, factors = planted("gaussian")
    storage = as_storage(X, weights=weights)
    slices = slices_of(storage, loss, factors, 0)
    rule = Rule(constraint(name).within(nonnegative=False), storage.n_observed)
    found = solve_rows(slices, np.full((SHAPE[0], RANK), 0.3), rule)
    assert found.solved.all()
    # A proximal step from the solution leads nowhere.
    Gamma = np.full_like(found.A, 50.0)
    moved = rule.constraint.apply(found.A - slices.at(found.A).slope / Gamma, Gamma / rule.scale)
    np.testing.assert_allclose(moved, found.A, atol=1e-6)


def test_a_step_that_takes_long_looks_at_the_clock():
    class OverError(Exception):
        pass

    def over():
        raise OverError

    X = np.abs(np.random.default_rng(0).normal(size=(4, 5, 6)))
    factors = tuple(np.full((n, 2), 0.5) for n in X.shape)
    slices = slices_of(as_storage(X), losses.get("gaussian"), factors, 0)
    rule = Rule(constraint("sparsity(0.1)"), 1.0, over)
    with pytest.raises(OverError):
        solve_rows(slices, factors[0], rule)
