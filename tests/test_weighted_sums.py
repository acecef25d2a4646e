"""Weighted sums over observed cells: objectives, samples and statistics, for every storage."""

import numpy as np
import pytest
from full_batch import all_fibers, example, settings
from holes import agrees, explicit, sparse_of, spoilt, weights_like
from pieces import LOSSES

from smartcpd import SparseTensor, datasets, losses
from smartcpd._common import threads
from smartcpd._common.stacked import offsets, stack
from smartcpd._data.opening import as_storage
from smartcpd._methods.smd_phase import sampled_gradient
from smartcpd._objectives import objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem
from smartcpd.sampling import Draws
from smartcpd.sampling.cells import StratifiedCells, UniformCells


@pytest.fixture(autouse=True)
def one_thread():
    with threads.limited_to(1):
        yield


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("order", [2, 3, 4])
def test_value_and_gradient_are_weighted_means(name, order):
    loss = losses.get(name)
    X, factors = example(loss, order)
    w = weights_like(X)
    expected, A = explicit(loss, X, w, factors), stack(factors)
    storages = [
        as_storage(spoilt(X, w), weights=w),
        as_storage(np.asfortranarray(spoilt(X, w, 1e300)), weights=w[::-1][::-1]),
        sparse_of(X, w, "unobserved"),
    ]
    if loss.allows_zeros:
        storages.append(sparse_of(X, w, "zero"))
    for storage in storages:
        storage.check(loss)
        agrees(objective_of(storage, loss), expected, A)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "bernoulli-odds"])
def test_a_sparse_mask_equals_a_dense_one(name):
    loss = losses.get(name)
    X, factors = example(loss)
    seen = np.random.default_rng(3).random(X.shape) < 0.6
    cells = np.argwhere(~seen)
    stored = X != 0
    everything = SparseTensor(np.nonzero(stored), X[stored], X.shape)
    for missing in (cells, tuple(cells.T), SparseTensor(cells, 1, X.shape)):
        sparse = SparseTensor(np.nonzero(stored), X[stored], X.shape, missing=missing)
        agrees(objective_of(sparse, loss), explicit(loss, X, seen * 1.0, factors), stack(factors))
    again = everything.with_missing(cells[:5]).with_missing(cells[5:])
    assert again.n_observed == seen.sum() == as_storage(X, mask=seen).n_observed
    agrees(objective_of(again, loss), explicit(loss, X, seen * 1.0, factors), stack(factors))


def test_missing_cells_of_a_scipy_array():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    X = np.array([[1, 0, 2], [0, 3, 0]])
    hidden = np.array([[True, False, False], [False, False, True]])
    tensor = SparseTensor(np.nonzero(X), X[X > 0], X.shape, missing=scipy_sparse.coo_array(hidden))
    assert tensor.nnz == 2
    assert tensor.n_missing == 2
    assert "2 missing" in repr(tensor)
    assert tensor.mean() == 5 / 4


@pytest.mark.parametrize("name", ["poisson", "gaussian", "gamma", "bernoulli-logit"])
def test_curvature_and_split_are_weighted(name):
    """A cell of weight 2 is one that is there twice: rows of a mode are doubled."""
    loss = losses.get(name)
    X, factors = example(loss)
    twice = np.array([0, 1, 1, 2, 3, 3, 4, 5])
    w = np.broadcast_to(np.array([1, 2, 1, 2, 1, 1])[:, None, None], X.shape)
    doubled = [factors[0][twice], *factors[1:]]
    V = np.random.default_rng(0).standard_normal(stack(factors).shape)
    V_doubled = np.concatenate([V[: X.shape[0]][twice], V[X.shape[0] :]])
    plain = objective_of(as_storage(X[twice]), loss)
    weighted = objective_of(as_storage(X, weights=w), loss)

    def folded(G):
        """The rows of the doubled factor added up."""
        rows = np.zeros((X.shape[0], G.shape[1]))
        np.add.at(rows, twice, G[: twice.size])
        return np.concatenate([rows, G[twice.size :]])

    A, B = stack(factors), stack(doubled)
    close = {"rtol": 1e-9, "atol": 1e-11}
    expected = folded(plain.curvature_product(B, V_doubled))
    np.testing.assert_allclose(weighted.curvature_product(A, V), expected, **close)
    unobserved = objective_of(sparse_of(X, w.astype(float), "unobserved"), loss)
    np.testing.assert_allclose(unobserved.curvature_product(A, V), expected, **close)
    if loss.background is not None:
        zeros = objective_of(sparse_of(X, w.astype(float), "zero"), loss)
        np.testing.assert_allclose(zeros.curvature_product(A, V), expected, **close)
    if loss.jensen_mirror is not None:
        ours, theirs = weighted.split(A, 1), plain.split(B, 1)
        assert ours[0] == pytest.approx(theirs[0])
        for one, other in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_allclose(one, other, **close)


class TestSamples:
    """What sampled iterations see is right in the mean."""

    X, factors = example(losses.get("poisson"))
    w = weights_like(X)

    def gradient(self, problem, draws, n_fibers):
        rng = np.random.default_rng(0)
        return sampled_gradient(problem, settings(n_fibers), draws, stack(self.factors), rng)

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("mode", [0, 1, 2])
    def test_fibers(self, sparse, mode):
        if sparse:
            problem = Problem.build(
                sparse_of(self.X, self.w, "zero"), 3, "poisson", sampler="uniform"
            )
        else:
            data = spoilt(self.X, self.w)
            problem = Problem.build(data, 3, "poisson", weights=self.w)
        fibers = all_fibers(self.X.shape, mode)
        draws = Draws.of_fibers(np.array([mode]), fibers[None])
        expected = explicit(problem.loss, self.X, self.w, self.factors)[1]
        first, last = offsets(self.X.shape)[mode : mode + 2]
        found = self.gradient(problem, draws, len(fibers))
        np.testing.assert_allclose(found, expected[first:last], rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("absent", ["zero", "unobserved"])
    @pytest.mark.parametrize("name", ["poisson", "bernoulli-odds"])
    def test_events(self, absent, name):
        loss = losses.get(name)
        X = np.minimum(self.X, 1.0) if name == "bernoulli-odds" else self.X
        problem = Problem.build(sparse_of(X, self.w, absent), 3, loss)
        events = np.arange(len(problem.storage.events))
        n_fibers = problem.n_fibers(None)
        fibers = all_fibers(X.shape, 1) if n_fibers else np.empty((0, 3), np.int64)
        draws = Draws(
            np.array([1]), fibers[None], events, np.array([0, events.size]), np.array([1.0])
        )
        first, last = offsets(X.shape)[1:3]
        found = self.gradient(problem, draws, len(fibers))
        expected = explicit(loss, X, self.w, self.factors)[1][first:last]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)

    def test_cells(self):
        rng = np.random.default_rng(0)
        dense = as_storage(spoilt(self.X, self.w), weights=self.w)
        for sampler in (
            UniformCells.of(dense, 4000),
            UniformCells.of(sparse_of(self.X, self.w, "zero"), 4000),
            StratifiedCells.of(sparse_of(self.X, self.w, "zero"), 4000),
            StratifiedCells.of(sparse_of(self.X, self.w, "unobserved"), 4000),
        ):
            draws = sampler.draw(5, rng)
            total = np.tile(sampler.weights, 5) * draws.own_weights / 5
            assert total.sum() == pytest.approx(self.w.sum(), rel=0.05)
            assert total @ draws.x == pytest.approx((self.w * self.X).sum(), rel=0.05)

    def test_scales_do_not_depend_on_the_unit_of_weights(self):
        loss, A = losses.get("gaussian"), stack(self.factors)
        found = []
        for factor in (1.0, 1e6):
            problem = Problem.build(self.X, 3, loss, weights=factor * self.w)
            sample = CellSample(problem)
            found.append((sample.curvature(A), sample.resolution(A), sample.error(A, 0.9 * A)))
        np.testing.assert_allclose(*found, rtol=1e-9)


def test_the_standard_error_of_a_difference_of_losses():
    X, truth = datasets.count((40, 30, 20), 2, a_max=2.0, random_state=0)
    other = [1.1 * truth[0], *truth[1:]]
    sample = CellSample(Problem.build(X, 2, "poisson"))
    values = [m - X * np.log(m) for m in (np.einsum("ir,jr,kr->ijk", *F) for F in (truth, other))]
    exact = np.std(values[0] - values[1]) / np.sqrt(X.size)
    assert sample.error(stack(truth), stack(other)) == pytest.approx(exact, rel=0.1)
    assert sample.error(stack(truth), stack(truth)) == 0


def test_statistics_are_of_observed_cells():
    X = np.array([[1.0, np.nan, -3.0], [4.0, 5.0, 1e9]])
    mask = np.array([[1, 1, 1], [1, 1, 0]])
    storage = as_storage(X, mask=mask)
    assert (storage.mean(), storage.lowest(), storage.n_observed) == (7 / 4, -3.0, 4)
    assert storage.mean_square() == 51 / 4
    weighted = as_storage(X, mask=mask, weights=np.full(X.shape, 2.0) * [[3, 1, 1], [1, 1, 1]])
    assert weighted.mean() == (3 * 1 - 3 + 4 + 5) / 6
    assert (weighted.n_missing, weighted.heaviest) == (2, 6.0)
