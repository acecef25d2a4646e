"""Products with the Gauss-Newton matrix, against one that is written out."""

import numpy as np
import pytest
from full_batch import example
from pieces import LOSSES

from smartcpd import SparseTensor, datasets, losses
from smartcpd._common import threads
from smartcpd._common.stacked import offsets, stack
from smartcpd._data.opening import as_storage
from smartcpd._objectives.dense import DenseObjective
from smartcpd._objectives.sparse import SparseObjective


@pytest.fixture(autouse=True)
def one_thread():
    with threads.limited_to(1):
        yield


def full(factors):
    letters = "abcde"[: len(factors)]
    return np.einsum(",".join(k + "r" for k in letters) + "->" + letters, *factors)


def jacobian(factors):
    """The derivative of every cell of the model by every entry of the stacked factors."""
    columns = []
    for mode, A in enumerate(factors):
        for i in np.ndindex(A.shape):
            unit = np.zeros_like(A)
            unit[i] = 1.0
            columns.append(full([*factors[:mode], unit, *factors[mode + 1 :]]).ravel())
    return np.stack(columns, axis=1)


def second_derivatives(loss, X, M):
    """By central differences of the derivative."""
    h = 1e-5 * np.abs(M)
    ends = [
        [loss.derivative(x, m, loss.params) for x, m in zip(X.flat, N.flat, strict=True)]
        for N in (M + h, M - h)
    ]
    return (np.array(ends[0]) - np.array(ends[1])) / (2 * h.ravel())


def objective_of(name, order):
    loss = losses.get(name)
    X, factors = example(loss, order)
    return DenseObjective(as_storage(X), loss), X, factors


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("order", [2, 3, 4])
def test_product_with_the_matrix_written_out(name, order):
    objective, X, factors = objective_of(name, order)
    A = stack(factors)
    V = np.random.default_rng(1).standard_normal(A.shape)
    J = jacobian(factors)
    w = np.maximum(second_derivatives(objective.loss, X, full(factors)), 0.0)
    expected = (J.T @ (w * (J @ V.ravel()))).reshape(A.shape) / X.size
    found = objective.curvature_product(A, V)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["poisson", "bernoulli-logit", "gamma", "huber(0.5)"])
def test_symmetric_and_never_negative(name):
    objective, _, factors = objective_of(name, 3)
    A = stack(factors)
    rng = np.random.default_rng(2)
    for _ in range(5):
        U, V = rng.standard_normal((2, *A.shape))
        BU, BV = (objective.curvature_product(A, W) for W in (U, V))
        assert np.vdot(U, BV) == pytest.approx(np.vdot(V, BU), rel=1e-10)
        assert np.vdot(V, BV) >= 0


def test_directions_that_leave_the_model_alone():
    objective, X, factors = objective_of("poisson", 3)
    A = stack(factors)
    V = np.zeros_like(A)
    starts = offsets(X.shape)
    V[: starts[1]], V[starts[1] : starts[2]] = A[: starts[1]], -A[starts[1] : starts[2]]
    assert np.abs(objective.curvature_product(A, V)).max() < 1e-12


def test_a_loss_of_ones_own_has_a_curvature():
    quartic = losses.custom(lambda x, m: (x - m) ** 4, lambda x, m: -4.0 * (x - m) ** 3)
    X, factors = example(quartic)
    A, J = stack(factors), jacobian(factors)
    V = np.random.default_rng(1).standard_normal(A.shape)
    w = 12.0 * (X - full(factors)).ravel() ** 2
    expected = (J.T @ (w * (J @ V.ravel()))).reshape(A.shape) / X.size
    found = DenseObjective(as_storage(X), quartic).curvature_product(A, V)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_threads_and_memory_layout():
    X, factors = datasets.count((70, 60, 50), 3, random_state=0)
    A = stack(factors)
    V = np.random.default_rng(0).standard_normal(A.shape)
    loss = losses.get("poisson")
    results = []
    for n in (1, 2):
        with threads.limited_to(n):
            results.append(DenseObjective(as_storage(X), loss, n).curvature_product(A, V))
    np.testing.assert_array_equal(*results)
    other = DenseObjective(as_storage(np.asfortranarray(X)), loss).curvature_product(A, V)
    np.testing.assert_allclose(other, results[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "beta(2)"])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_sparse_equals_dense(name, order):
    objective, X, factors = objective_of(name, order)
    X = np.where(X > 1.5, X, 0.0)
    A = stack(factors)
    V = np.random.default_rng(1).standard_normal(A.shape)
    sparse = SparseTensor(np.argwhere(X), X[X != 0], X.shape)
    found = SparseObjective(sparse, objective.loss).curvature_product(A, V)
    expected = DenseObjective(as_storage(X), objective.loss).curvature_product(A, V)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["poisson", "huber(0.5)"])
def test_unobserved_cells_do_not_count(name):
    objective, X, factors = objective_of(name, 3)
    chosen = X > 0.8
    sparse = SparseTensor(np.argwhere(chosen), X[chosen], X.shape, absent="unobserved")
    A, J = stack(factors), jacobian(factors)
    V = np.random.default_rng(1).standard_normal(A.shape)
    w = np.maximum(second_derivatives(objective.loss, X, full(factors)), 0.0) * chosen.ravel()
    expected = (J.T @ (w * (J @ V.ravel()))).reshape(A.shape) / chosen.sum()
    found = SparseObjective(sparse, objective.loss).curvature_product(A, V)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def test_threads_do_not_change_a_bit_of_sparse_products():
    X, factors = datasets.count((70, 60, 50), 3, random_state=0)
    sparse = SparseTensor(np.argwhere(X), X[X > 0], X.shape)
    A = stack(factors)
    V = np.random.default_rng(0).standard_normal(A.shape)
    results = []
    for n in (1, 2):
        with threads.limited_to(n):
            objective = SparseObjective(sparse, losses.get("poisson"), n)
            results.append(objective.curvature_product(A, V))
    np.testing.assert_array_equal(*results)
