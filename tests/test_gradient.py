"""The objective: its value, its gradient and their samples."""

from dataclasses import replace

import numpy as np
import pytest
from full_batch import all_fibers, example
from pieces import LOSSES
from scipy.stats import chisquare

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Dense
from smartcpd._objectives.dense import DenseObjective
from smartcpd.sampling.uniform import Uniform

every_loss = pytest.mark.parametrize("name", LOSSES)
every_order = pytest.mark.parametrize("order", [2, 3, 4])


@pytest.fixture(autouse=True)
def one_thread():
    with threads.limited_to(1):
        yield


def full(factors):
    """The model, all of it."""
    letters = "abcde"[: len(factors)]
    return np.einsum(",".join(k + "r" for k in letters) + "->" + letters, *factors)


def objective_of(name, order):
    loss = losses.get(name)
    X, factors = example(loss, order)
    return DenseObjective(as_storage(X), loss), X, factors


def sums_over(objective, mode, A, fibers):
    """The sum over chosen fibers of a mode, and its gradient."""
    return replace(objective, fiber_mode=mode)._pass().gradient(A, fibers)


class TestObjective:
    @every_loss
    @every_order
    def test_value_is_the_mean_over_cells(self, name, order):
        objective, X, factors = objective_of(name, order)
        loss, M = objective.loss, full(factors)
        cells = [loss.value(x, m, loss.params) for x, m in zip(X.flat, M.flat, strict=True)]
        assert objective.estimate(stack(factors)).loss == pytest.approx(np.mean(cells), rel=1e-11)

    @every_loss
    @every_order
    def test_gradient_by_finite_differences(self, name, order):
        objective, _, factors = objective_of(name, order)
        A = stack(factors)
        value, gradient = objective.gradient(A)
        assert value == pytest.approx(objective.estimate(A).loss, rel=1e-12)
        rng = np.random.default_rng(0)
        for _ in range(3):
            direction = rng.standard_normal(A.shape)
            h = 1e-6
            ends = [objective.estimate(A + s * h * direction).loss for s in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * h)
            assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-4, abs=1e-8)

    def test_every_entry_of_the_gradient(self):
        objective, _, factors = objective_of("poisson", 3)
        A = stack(factors)
        _, gradient = objective.gradient(A)
        numeric = np.empty_like(A)
        for i in np.ndindex(A.shape):
            ends = []
            for h in (1e-5, -1e-5):
                B = A.copy()
                B[i] += h
                ends.append(objective.estimate(B).loss)
            numeric[i] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)

    @every_order
    @pytest.mark.parametrize("name", ["poisson", "gaussian"])
    def test_the_sampled_gradient_is_unbiased(self, name, order):
        objective, X, factors = objective_of(name, order)
        A = stack(factors)
        _, gradient = objective.gradient(A)
        for mode in range(order):
            draws = [
                sums_over(objective, mode, A, fiber[None])[1] / X.shape[mode]
                for fiber in all_fibers(X.shape, mode)
            ]
            np.testing.assert_allclose(np.mean(draws, axis=0), gradient, rtol=1e-10)

    def test_the_sampled_value_is_unbiased(self):
        objective, X, factors = objective_of("poisson", 3)
        A = stack(factors)
        for mode in range(3):
            fibers = all_fibers(X.shape, mode)
            draws = [sums_over(objective, mode, A, f[None])[0] for f in fibers]
            assert np.mean(draws) / X.shape[mode] == pytest.approx(
                objective.estimate(A).loss, rel=1e-12
            )

    def test_the_index_of_the_updated_mode_is_ignored(self):
        objective, X, factors = objective_of("poisson", 3)
        fibers = all_fibers(X.shape, 1)
        other = fibers.copy()
        other[:, 1] = 10**6
        A = stack(factors)
        np.testing.assert_array_equal(
            sums_over(objective, 1, A, fibers)[1],
            sums_over(objective, 1, A, other)[1],
        )

    @pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 1, 3), (3, 70_000)])
    def test_thin_and_long_tensors(self, shape):
        rng = np.random.default_rng(0)
        X = rng.normal(size=shape)
        factors = [rng.normal(size=(size, 2)) for size in shape]
        objective = DenseObjective(as_storage(X), losses.get("gaussian"))
        expected = 0.5 * np.mean((X - full(factors)) ** 2)
        assert objective.estimate(stack(factors)).loss == pytest.approx(expected)
        assert objective.gradient(stack(factors))[0] == pytest.approx(expected)


class TestUniform:
    SHAPE = (3, 2, 4)

    def test_every_fiber_equally_often(self):
        rng = np.random.default_rng(0)
        draws = Uniform().draw(Dense.of(np.ones(self.SHAPE)), rng.integers(3, size=4000), 5, rng)
        for mode in range(3):
            # The fibers of a mode, by their indices in the other two.
            others = [k for k in range(3) if k != mode]
            seen = draws.fibers[draws.modes == mode][:, :, others].reshape(-1, 2)
            sizes = [self.SHAPE[k] for k in others]
            counts = np.bincount(np.ravel_multi_index(seen.T, sizes), minlength=np.prod(sizes))
            assert chisquare(counts).pvalue > 1e-3

    def test_draws_of_an_iteration_are_independent(self):
        # Pairs of fibers of one draw fill their square evenly, the diagonal included.
        modes = np.zeros(6000, np.int64)
        draws = Uniform().draw(Dense.of(np.ones((6, 5))), modes, 2, np.random.default_rng(1))
        pairs = draws.fibers[:, :, 1]
        counts = np.bincount(pairs[:, 0] * 5 + pairs[:, 1], minlength=25)
        assert chisquare(counts).pvalue > 1e-3

    def test_draws_follow_their_generator(self):
        data = Dense.of(np.ones(self.SHAPE))
        one, again, other = (
            Uniform().draw(data, np.zeros(20, np.int64), 3, np.random.default_rng(seed))
            for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(one.fibers, again.fibers)
        assert (one.fibers != other.fibers).any()
