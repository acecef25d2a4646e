"""The guess of the Hessian that quasi-Newton steps begin with."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted import interpreted

from smartcpd._common.stacked import offsets, parts, unstack
from smartcpd._kernels.coupled_solve import compiled_coupled_solve, coupled_solve, curve
from smartcpd._methods import coupled_hessian
from smartcpd._methods.coupled_hessian import CoupledHessian
from smartcpd._objectives.fisher_weights import Marginals

SHAPES = [(4, 3), (4, 3, 5), (3, 2, 4, 3), (5, 1, 3)]


def made(shape, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.random((sum(shape), rank)) + 0.2
    weights = Marginals(1.7, rng.random(sum(shape)) + 0.5)
    return A, CoupledHessian.at(A, shape, weights), weights


def jacobian(A, shape):
    """Of all cells by all entries, one entry at a time: the model is linear in each."""
    columns = []
    for place in np.ndindex(*A.shape):
        E = np.zeros_like(A)
        E[place] = 1.0
        mode = int(np.searchsorted(offsets(shape), place[0], side="right")) - 1
        factors = unstack(A, shape)
        factors[mode] = unstack(E, shape)[mode]
        letters = "abcd"[: len(shape)]
        formula = ",".join(letter + "z" for letter in letters) + "->" + letters
        columns.append(np.einsum(formula, *factors).ravel())
    return np.array(columns).T


def dense(A, shape, weights):
    """J'WJ with weights that are a product over the modes, and the damping."""
    w = np.ones(())
    for rows in parts(weights.rows[:, None], shape):
        w = np.multiply.outer(w, rows[:, 0])
    J = jacobian(A, shape)
    return weights.mean / w.size * (J.T * w.ravel()) @ J


def arguments(hessian):
    own = hessian.own
    return (
        hessian.weighted,
        np.ascontiguousarray(own.rows[:, 0]),
        offsets(own.shape),
        own.blocks,
        hessian.pairs,
        own.inverses,
        own.damping,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_product_is_that_of_the_dense_matrix(shape):
    A, hessian, weights = made(shape)
    weighted, u, places, blocks, pairs, _, damping = arguments(hessian)
    V = np.random.default_rng(1).standard_normal(A.shape)
    out = np.empty_like(A)
    moments, mixed = np.empty((len(shape), 3, 3)), np.empty((3, 3))
    interpreted(curve)(
        weighted, u, places, blocks, pairs, np.zeros_like(damping), V, moments, mixed, out
    )
    expected = dense(A, shape, weights) @ V.ravel()
    np.testing.assert_allclose(out.ravel(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("held", [0.0, 0.3])
def test_solves_the_dense_system_of_the_free_entries(shape, held, monkeypatch):
    monkeypatch.setattr(coupled_hessian, "TOLERANCE", 1e-10)
    monkeypatch.setattr(coupled_hessian, "MOST_STEPS", 1000)
    A, hessian, weights = made(shape)
    rng = np.random.default_rng(2)
    G, free = rng.standard_normal(A.shape), rng.random(A.shape) >= held
    X = hessian.solve(G, free)
    damping = np.repeat(hessian.own.damping, shape, axis=0)
    H = dense(A, shape, weights) + np.diag((damping * hessian.own.rows).ravel())
    left = H @ X.ravel() - G.ravel()
    assert (X[~free] == 0).all()
    assert np.abs(left[free.ravel()]).max() <= 1e-6 * np.abs(G).max()


@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_equals_interpreted(shape):
    A, hessian, _ = made(shape)
    G, free = np.random.default_rng(3).standard_normal(A.shape), np.ones(A.shape, bool)
    found = [np.empty_like(A) for _ in range(2)]
    for solve, X in zip((compiled_coupled_solve(), interpreted(coupled_solve)), found, strict=True):
        solve(*arguments(hessian), G, free, 1e-3, 3, X)
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_component_that_vanished_gets_a_finite_step():
    shape = (4, 3, 5)
    A, _, weights = made(shape)
    A[:, 1] = 0.0
    hessian = CoupledHessian.at(A, shape, weights)
    X = hessian.solve(np.ones_like(A), np.ones(A.shape, bool))
    assert np.isfinite(X).all()
