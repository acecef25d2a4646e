"""Losses and gradients of sparse data: exact ones, and the expectation of sampled ones."""

import numpy as np
import pytest
from full_batch import all_fibers, example, settings
from pieces import LOSSES

from smartcpd import SparseTensor, losses
from smartcpd._common import threads
from smartcpd._common.stacked import offsets, stack
from smartcpd._data.storage import Dense
from smartcpd._fitting.model import CPModel
from smartcpd._methods.smd_phase import sampled_gradient
from smartcpd._objectives import objective_of
from smartcpd._objectives.backgrounds import Exhaustive, HotCells, Sampled
from smartcpd._problem.problem import Problem
from smartcpd.sampling import Draws
from smartcpd.sampling.nonempty import Nonempty
from smartcpd.sampling.nonzeros import Nonzeros

WITH_ZEROS = [name for name in LOSSES if losses.get(name).allows_zeros]
every_loss = pytest.mark.parametrize("name", WITH_ZEROS)


@pytest.fixture(autouse=True)
def one_thread():
    with threads.limited_to(1):
        yield


def thinned(name, order=3):
    """Data of which most cells are zero, and factors that fit its loss."""
    loss = losses.get(name)
    X, factors = example(loss, order)
    X = np.array(X)
    X[np.random.default_rng(1).random(X.shape) < 0.8] = 0
    return loss, X, stack(factors)


def sparse(X, **choices):
    cells = np.nonzero(X)
    return SparseTensor(cells, X[cells], X.shape, **choices)


class TestExact:
    @every_loss
    @pytest.mark.parametrize("order", [2, 3, 4])
    def test_the_same_as_dense(self, name, order):
        loss, X, A = thinned(name, order)
        value, gradient = objective_of(Dense.of(X), loss).gradient(A)
        objective = objective_of(sparse(X), loss)
        found = objective.gradient(A)
        assert found[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-10, atol=1e-14)
        assert objective.estimate(A) == (pytest.approx(value, rel=1e-12), 0.0)

    @every_loss
    def test_unobserved_cells_do_not_count(self, name):
        loss, X, A = thinned(name)
        cells = np.nonzero(X)
        objective = objective_of(sparse(X, absent="unobserved"), loss)
        value, gradient = objective.gradient(A)
        factors = np.split(A, offsets(X.shape)[1:-1])
        m = CPModel(factors).values(cells)
        at = [loss.value(x, v, loss.params) for x, v in zip(X[cells], m, strict=True)]
        assert value == pytest.approx(np.mean(at), rel=1e-11)
        direction = np.random.default_rng(0).standard_normal(A.shape)
        ends = [objective.estimate(A + s * 1e-6 * direction).loss for s in (1, -1)]
        assert np.sum(gradient * direction) == pytest.approx(
            (ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-8
        )

    def test_two_threads_give_the_same_bits(self):
        rng = np.random.default_rng(0)
        X = SparseTensor(rng.integers([200, 30, 40], size=(60_000, 3)), 1, (200, 30, 40))
        A = rng.random((270, 5))
        results = []
        for n_threads in (1, 2):
            with threads.limited_to(n_threads):
                objective = objective_of(X, losses.get("poisson"), n_threads)
                results.append(objective.gradient(A))
        assert results[0][0] == results[1][0]
        np.testing.assert_array_equal(results[0][1], results[1][1])


class TestBackgrounds:
    SHAPE = (60, 50, 40)

    def rare(self, seed=0, size=0.5):
        """A model that is small nearly everywhere, and large in a few places."""
        rng = np.random.default_rng(seed)
        return size * stack([rng.gamma(0.15, 1.0, (n, 4)) for n in self.SHAPE])

    @pytest.mark.parametrize("name", ["bernoulli-odds", "negative-binomial(0.7)"])
    def test_hot_cells_stand_for_all(self, name):
        loss, A = losses.get(name), self.rare()
        m = CPModel(np.split(A, offsets(self.SHAPE)[1:-1])).full()
        hot = HotCells.of(loss, self.SHAPE, 1, A)
        assert len(hot.cells) == np.count_nonzero(m > 0.05)
        everything = Exhaustive(loss, self.SHAPE).sum(A, True)
        found = hot.sum(A, True)
        assert found.total == pytest.approx(everything.total, rel=2e-4)
        total, _, variance = hot.sum(A, False)
        assert abs(total - everything.total) < np.sqrt(12 * variance) < 1e-3 * total
        np.testing.assert_allclose(found.gradient, everything.gradient, rtol=2e-2, atol=1e-2)

    def test_every_hot_cell_is_found_once(self):
        A = self.rare(1, 1.0)
        m = CPModel(np.split(A, offsets(self.SHAPE)[1:-1])).full()
        hot = HotCells.of(losses.get("bernoulli-odds"), self.SHAPE, 1, A)
        found = np.zeros(self.SHAPE, int)
        np.add.at(found, hot.cells.indices, 1)
        np.testing.assert_array_equal(found, m > 0.05)

    def test_too_many_hot_cells(self):
        A = np.ones((300, 2))
        assert HotCells.of(losses.get("bernoulli-odds"), (100, 100, 100), 1, A) is not None
        assert (
            HotCells.of(losses.get("bernoulli-odds"), (100, 100, 110), 1, np.ones((310, 2))) is None
        )

    @pytest.mark.parametrize("name", ["bernoulli-logit", "poisson-log", "beta(0.5)", "huber(2)"])
    def test_a_sample_knows_its_error(self, name):
        loss, A = losses.get(name), self.rare(2, 0.4)
        exact = Exhaustive(loss, self.SHAPE).sum(A, True)
        away = []
        for seed in range(12):
            found = Sampled(loss, self.SHAPE, 1, A, n_cells=4096, seed=seed).sum(A, True)
            away.append((found.total - exact.total) / np.sqrt(found.variance))
        assert 0.3 < np.sqrt(np.mean(np.square(away))) < 2.5

    def test_a_sampled_gradient_has_no_bias(self):
        loss, A = losses.get("bernoulli-logit"), self.rare(3, 0.4)
        exact = Exhaustive(loss, self.SHAPE).sum(A, True).gradient
        draws = [
            Sampled(loss, self.SHAPE, 1, A, n_cells=2048, seed=seed).sum(A, True).gradient
            for seed in range(40)
        ]
        error = np.std(draws, axis=0) / np.sqrt(len(draws))
        z = (np.mean(draws, axis=0) - exact) / np.maximum(error, 1e-9)
        assert np.abs(z[error > 1e-6]).mean() < 1.5


class Picks:
    """A generator whose whole numbers are given."""

    def __init__(self, picks):
        self.picks = np.asarray(picks)

    def integers(self, high, size, dtype=np.int64):
        return np.broadcast_to(self.picks, size).astype(dtype)


class TestExpectation:
    """The mean over every possible draw is the full gradient, for every sampler and loss."""

    def check(self, name, sampler, draws_of_mode):
        loss, X, A = thinned(name)
        tensor = sparse(X)
        _, gradient = objective_of(tensor, loss).gradient(A)
        problem = Problem.build(tensor, A.shape[1], loss, sampler=sampler, step="adagrad")
        starts = offsets(X.shape)
        rng = np.random.default_rng(0)
        for mode in range(X.ndim):
            found = [
                sampled_gradient(problem, settings(d.fibers.shape[1]), d, A, rng)
                for d in draws_of_mode(problem, tensor, mode)
            ]
            np.testing.assert_allclose(
                np.mean(found, axis=0),
                gradient[starts[mode] : starts[mode + 1]],
                rtol=1e-9,
                atol=1e-13,
            )

    def background_fibers(self, problem, shape, mode):
        """All of them: the mean over what the background leaves to be sampled."""
        return all_fibers(shape, mode) if problem.n_fibers(1) else np.empty((0, len(shape)), int)

    @every_loss
    def test_nonzeros(self, name):
        def draws(problem, tensor, mode):
            fibers = self.background_fibers(problem, tensor.shape, mode)[None]
            for event in range(tensor.nnz):
                drawn = Nonzeros(1).draw(tensor, np.array([mode]), 0, Picks(event))
                assert drawn.events.tolist() == [event]
                yield drawn._replace(fibers=fibers)

        self.check(name, "nonzeros", draws)

    @every_loss
    def test_nonempty_fibers(self, name, monkeypatch):
        monkeypatch.setattr(Nonempty, "_n_fibers", staticmethod(lambda storage: 1))

        def draws(problem, tensor, mode):
            fibers = self.background_fibers(problem, tensor.shape, mode)[None]
            for fiber in range(tensor.fiber_indices[mode].n_fibers):
                drawn = Nonempty().draw(tensor, np.array([mode]), 0, Picks(fiber))
                yield drawn._replace(fibers=fibers)

        self.check(name, "nonempty", draws)

    @every_loss
    def test_uniform_fibers(self, name):
        def draws(problem, tensor, mode):
            for fiber in all_fibers(tensor.shape, mode):
                yield Draws.of_fibers(np.array([mode]), fiber[None, None])

        self.check(name, "uniform", draws)

    @pytest.mark.parametrize("name", ["poisson", "bernoulli-odds"])
    def test_uniform_fibers_see_what_dense_data_shows(self, name):
        loss, X, A = thinned(name)
        fibers = np.ascontiguousarray(all_fibers(X.shape, 1)[::3])
        draws = Draws.of_fibers(np.array([1]), fibers[None])
        one, two = (
            sampled_gradient(
                Problem.build(data, A.shape[1], loss, sampler="uniform"),
                settings(len(fibers)),
                draws,
                A,
                np.random.default_rng(0),
            )
            for data in (X, sparse(X))
        )
        np.testing.assert_array_equal(one, two)

    def test_events_are_drawn_evenly(self):
        X = sparse(thinned("poisson")[1])
        rng = np.random.default_rng(0)
        drawn = Nonzeros(7).draw(X, np.zeros(3000, int), 0, rng)
        counts = np.bincount(drawn.events, minlength=X.nnz)
        assert abs(counts - counts.mean()).max() < 6 * np.sqrt(counts.mean())
        np.testing.assert_allclose(drawn.event_weights, X.nnz / 7)


class TestFiberIndex:
    @pytest.mark.parametrize("order", [2, 3, 4])
    def test_every_entry_in_its_fiber(self, order):
        _, X, _ = thinned("poisson", order)
        tensor = sparse(X)
        for mode, index in enumerate(tensor.fiber_indices):
            nonempty = np.count_nonzero(X.any(axis=mode))
            assert index.n_fibers == nonempty
            others = [k for k in range(order) if k != mode]
            for fiber in range(index.n_fibers):
                at = index.entries_of(np.array([fiber]))
                places = {tuple(int(tensor.indices[k][e]) for k in others) for e in at}
                assert len(places) == 1
                whole = np.moveaxis(X, mode, -1)[places.pop()]
                assert at.size == np.count_nonzero(whole)


@every_loss
def test_a_huge_model_of_a_missing_cell_is_no_low_loss(name):
    """What the background has in the place of a missing cell is taken away, up to rounding."""
    loss, X, _ = thinned(name)
    cells = np.argwhere(np.ones(X.shape, bool))
    values = np.asarray(X, float).ravel()
    last = tuple(n - 1 for n in X.shape)
    missing = np.array([last])
    seen = (values != 0) & (cells != last).any(axis=1)
    storage = SparseTensor(cells[seen], values[seen], X.shape, missing=missing)
    for size in (1.0, 20.0, 60.0, 140.0):
        factors = [np.full((n, 1), 0.1) for n in X.shape]
        for A, row in zip(factors, last, strict=True):
            A[row] = size
        found = objective_of(storage, loss).estimate(stack(factors)).loss
        mask = np.ones(X.shape, bool)
        mask[last] = False
        exact = objective_of(Dense.of(X, mask=mask), loss).estimate(stack(factors)).loss
        assert found == exact or found >= exact - 1e-6 * abs(exact)
