"""Adam on sampled cells: its samples, its steps, its epochs."""

from dataclasses import replace

import numpy as np
import pytest
from full_batch import example
from scipy.stats import chisquare

from smartcpd import SparseTensor, datasets, losses
from smartcpd._common import threads
from smartcpd._common.stacked import offsets, stack, unstack
from smartcpd._data.opening import as_storage
from smartcpd._fitting.fit import fit
from smartcpd._fitting.settings import make_settings
from smartcpd._kernels.adam import WORTH_GROUPS
from smartcpd._methods.base import Task
from smartcpd._methods.gcp_adam import LEG_CELLS, Adam, GCPAdam
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError
from smartcpd.sampling.cells import CellDraws, StratifiedCells, UniformCells, random_rows

X, TRUTH = datasets.count((20, 15, 10), rank=3, random_state=0)
few_losses = pytest.mark.parametrize("name", ["gaussian", "poisson", "bernoulli-logit", "huber(1)"])


@pytest.fixture(autouse=True)
def one_thread():
    with threads.limited_to(1):
        yield


def sparse_example(loss, absent="zero"):
    X, factors = example(loss)
    stored = np.random.default_rng(1).random(X.shape) < 0.3
    return SparseTensor(np.argwhere(stored), X[stored], X.shape, absent), factors


def gradient_of(draws, weights, loss, factors):
    """The gradient of the weighted sum of the loss over cells, in NumPy."""
    shape = [len(A) for A in factors]
    at = draws.rows.astype(np.int64) - offsets(shape)[:-1, None]
    rows = [A[i] for A, i in zip(factors, at, strict=True)]
    m = np.prod(rows, axis=0).sum(axis=1)
    d = np.empty_like(m)
    loss.derivative_block("float64")(draws.x, m, loss.params, d)
    G = [np.zeros_like(A) for A in factors]
    for n, g in enumerate(G):
        others = np.prod([r for k, r in enumerate(rows) if k != n], axis=0)
        np.add.at(g, at[n], (np.tile(weights, len(m) // len(weights)) * d)[:, None] * others)
    return np.concatenate(G)


def mean_gradient(sampler, loss, factors, n_iterations):
    """Averaged over many draws, with standard errors."""
    rng = np.random.default_rng(0)
    batches = [
        gradient_of(sampler.draw(n_iterations // 20, rng), sampler.weights, loss, factors)
        / (n_iterations // 20)
        for _ in range(20)
    ]
    return np.mean(batches, axis=0), np.std(batches, axis=0) / np.sqrt(19)


class TestSampling:
    @few_losses
    @pytest.mark.parametrize("kind", ["dense", "uniform", "stratified", "unobserved"])
    def test_the_sampled_gradient_is_unbiased(self, name, kind):
        loss = losses.get(name)
        if kind == "dense":
            X, factors = example(loss)
            storage = as_storage(X)
        else:
            absent = "unobserved" if kind == "unobserved" else "zero"
            storage, factors = sparse_example(loss, absent)
        sampling = UniformCells if kind in ("dense", "uniform") else StratifiedCells
        mean, error = mean_gradient(sampling.of(storage, 20), loss, factors, 20_000)
        _, exact = objective_of(storage, loss).gradient(stack(factors))
        exact *= storage.n_observed
        # Entries of a gradient err together, so they are judged together.
        assert np.linalg.norm(error) < 0.05 * np.linalg.norm(exact)
        assert np.linalg.norm(mean - exact) < 3 * np.linalg.norm(error)

    def test_cells_are_drawn_evenly(self):
        rng = np.random.default_rng(0)
        for shape, n_samples in (((3, 9, 2), 400), ((7, 5, 3), 10), ((90_000, 3, 70_000), 1000)):
            rows = random_rows(shape, 50_000 // n_samples, n_samples, rng).astype(np.int64)
            for k, size in enumerate(shape):
                index = rows[k] - offsets(shape)[k]
                assert index.min() >= 0
                assert index.max() < size
            # Digits of one number tell nothing of each other: every cell, or block of cells, is
            # as frequent as any other.
            bins = [min(size, 8) if size > 100 else size for size in shape]
            places = [
                (rows[k] - offsets(shape)[k]) * bins[k] // size for k, size in enumerate(shape)
            ]
            counts = np.bincount(np.ravel_multi_index(places, bins), minlength=np.prod(bins))
            assert chisquare(counts).pvalue > 1e-3

    def test_values_are_those_of_the_cells(self):
        sparse, _ = sparse_example(losses.get("poisson"))
        for storage in (as_storage(X[::2, ::-1]), as_storage(X.T.astype(np.float32)), sparse):
            array = storage.to_dense() if storage is sparse else storage.array
            draws = UniformCells.of(storage, 300).draw(2, np.random.default_rng(0))
            at = draws.rows - offsets(storage.shape)[:-1, None]
            np.testing.assert_array_equal(draws.x, array[tuple(at.astype(int))])

    def test_strata(self):
        storage, _ = sparse_example(losses.get("poisson"))
        sampler = StratifiedCells.of(storage, 7)
        draws = sampler.draw(50, np.random.default_rng(0))
        x = draws.x.reshape(50, 14)
        assert (x[:, :7] != 0).all()
        assert (x[:, 7:] == 0).all()
        seen = np.empty_like(draws.x)
        storage.read_cells(draws.rows, seen)
        np.testing.assert_array_equal(seen, draws.x)
        assert sampler.weights.sum() == pytest.approx(storage.n_cells)

    def test_what_cannot_be_sampled_is_refused(self):
        with pytest.raises(IncompatibleError, match="X is dense"):
            StratifiedCells.of(as_storage(X))
        storage, _ = sparse_example(losses.get("poisson"), "unobserved")
        with pytest.raises(IncompatibleError, match="unobserved"):
            UniformCells.of(storage)

    def test_empty_and_full_tensors(self):
        nothing = SparseTensor(np.empty((0, 3), int), np.empty(0), (4, 3, 2))
        everything = SparseTensor(np.argwhere(np.ones((4, 3, 2))), 1.0, (4, 3, 2))
        for storage in (nothing, everything):
            sampler = StratifiedCells.of(storage)
            draws = sampler.draw(3, np.random.default_rng(0))
            assert draws.x.size == 3 * sampler.weights.size > 0
            assert sampler.weights.sum() == pytest.approx(24)

    def test_as_many_samples_as_pyttb(self):
        dense = as_storage(np.ones((100, 100, 100), np.uint8))
        assert UniformCells.of(dense).n_samples == 10_000
        assert UniformCells.of(as_storage(X)).n_samples == 1000
        storage, _ = sparse_example(losses.get("poisson"))
        sampler = StratifiedCells.of(storage)
        assert sampler.n_nonzeros == sampler.n_zeros == storage.nnz
        positions = sampler._positions(2, np.random.default_rng(0))
        np.testing.assert_array_equal(positions, [np.arange(storage.nnz)] * 2)


# Each order has a compiled loop of its own.
ORDERS = [3, *(pytest.param(order, marks=pytest.mark.slow) for order in (2, 4))]


class TestSteps:
    @few_losses
    @pytest.mark.parametrize("order", ORDERS)
    def test_steps_are_those_of_numpy(self, name, order):
        loss = losses.get(name)
        data, factors = example(loss, order)
        problem = Problem.build(
            data, 3, loss, constraint=["box(0.3, 0.9)"] * (order - 1) + ["auto"]
        )
        rule = GCPAdam(rate=0.05, n_samples=300, clock=1)
        sampler = rule.sampler(problem)
        draws = sampler.draw(4, np.random.default_rng(0))
        adam = Adam(rule, problem, stack(factors))
        adam.run(draws, sampler.weights, rule.rate)

        A = stack(factors)
        cut = sum(data.shape[:-1])
        free = -np.inf if name != "poisson" else 0.0
        first = second = 0.0
        for t in range(4):
            part = slice(300 * t, 300 * (t + 1))
            now = CellDraws(draws.rows[:, part], draws.x[part])
            g = gradient_of(now, sampler.weights, loss, unstack(A, data.shape))
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            v = np.sqrt(second / (1 - 0.999 ** (t + 1)))
            A = A - 0.05 * first / (1 - 0.9 ** (t + 1)) / (v + 1e-8)
            A[:cut] = np.clip(A[:cut], 0.3, 0.9)
            A[cut:] = np.maximum(A[cut:], free)
        # Gradients are in float32.
        np.testing.assert_allclose(adam.factors, A, rtol=1e-5, atol=1e-6)
        assert not adam.A[:, 3:].any()

    def test_a_failed_epoch_leaves_no_trace(self):
        problem = Problem.build(X, 3, "poisson")
        rule = GCPAdam()
        sampler, adam = rule.sampler(problem), Adam(rule, problem, stack(TRUTH))
        adam.run(sampler.draw(3, np.random.default_rng(0)), sampler.weights, 0.1)
        before = adam.saved()
        adam.run(sampler.draw(3, np.random.default_rng(1)), sampler.weights, 0.1)
        changed = adam.factors.copy()
        adam.restore(before)
        assert not np.array_equal(adam.factors, changed)
        adam.run(sampler.draw(3, np.random.default_rng(1)), sampler.weights, 0.1)
        np.testing.assert_array_equal(adam.factors, changed)


def start(seed=0):
    rng = np.random.default_rng(seed)
    return [0.5 * rng.random((size, 3)) + 0.5 for size in X.shape]


def solved(rule, problem, begin, seed=0, n_threads=1, **limits):
    settings = make_settings(problem, n_threads=n_threads, **{"tol": 0, **limits})
    rng = np.random.default_rng(seed)
    return rule.solver().run(Task(problem, settings, begin, rng, lambda report: False))


class TestFits:
    @pytest.mark.parametrize("kind", ["dense", "stratified", "uniform"])
    def test_counts_are_recovered(self, kind):
        data = X if kind == "dense" else SparseTensor(np.nonzero(X), X[X != 0], X.shape)
        sampler = "uniform" if kind == "uniform" else "auto"
        found = fit(
            data, 3, "poisson", solver="gcp-adam", sampler=sampler, init=start(), random_state=0
        )
        best = fit(X, 3, "poisson", solver="mm", init=TRUTH)
        assert found.status.converged
        assert found.loss < best.loss + 0.005  # noise alone is worth 0.038
        assert (np.diff(found.history["loss"]) <= 0).all()
        assert found.history[-1].entries % 1000 == 0

    def test_unobserved_cells_are_left_out(self):
        kept = np.random.default_rng(0).random(X.shape) < 0.5
        data = SparseTensor(np.nonzero(kept), X[kept], X.shape, absent="unobserved")
        found, best = (
            fit(data, 3, "poisson", solver=solver, init=start(), random_state=0)
            for solver in ("gcp-adam", "smd")
        )
        assert found.loss == pytest.approx(best.loss, abs=0.01)

    def test_bounds_hold(self):
        found = fit(
            X, 3, "gaussian", solver="gcp-adam",
            constraint=["box(0.2, 0.8)", "nonnegative", "free"],
            max_epochs=2, random_state=0,
        )  # fmt: skip
        A, B, _ = found.model.distribute().factors
        assert A.min() >= 0.2
        assert A.max() <= 0.8
        assert B.min() >= 0

    @pytest.mark.parametrize("n_samples", [WORTH_GROUPS, 5000])
    def test_the_same_bits_for_any_number_of_threads(self, n_samples):
        problem = Problem.build(X, 3, "poisson")
        # Of more than one stretch, of which one thread draws the next.
        rule = GCPAdam(n_samples=n_samples, epoch_iterations=5 * LEG_CELLS // (2 * n_samples))
        one, two = (
            solved(rule, problem, start(), n_threads=n, max_epochs=2).factors for n in (1, 2)
        )
        other = solved(rule, problem, start(), seed=1, max_epochs=2).factors
        for A, B, C in zip(one, two, other, strict=True):
            np.testing.assert_array_equal(A, B)
            assert not np.array_equal(A, C)

    def test_other_constraints_are_refused(self):
        with pytest.raises(IncompatibleError, match=r"'gcp-adam' knows bounds.*'simplex'"):
            fit(X, 3, "poisson", solver="gcp-adam", constraint={1: "simplex"})

    def test_limits(self):
        few = fit(X, 3, "poisson", solver="gcp-adam", tol=0, max_epochs=3, random_state=0)
        assert few.history[-1].epoch == 3
        assert "max_epochs=3" in few.status.reason
        problem = Problem.build(X, 3, "poisson")
        rule = GCPAdam(rate=1e-7, epoch_iterations=10**6, n_samples=20_000)
        short = solved(rule, problem, start(), max_time=0.2)
        assert "max_time" in short.status.reason
        assert short.history[-1].time < 2.0

    def test_failed_epochs_decay_the_rate_and_end_the_fit(self):
        problem = Problem.build(X, 3, "poisson")
        rule = GCPAdam(rate=10.0, max_fails=2, epoch_iterations=20)
        found = solved(rule, problem, TRUTH)
        assert found.status.converged
        assert "3 epochs ended with a higher loss" in found.status.reason
        phases = [record.phase for record in found.history]
        assert phases[1] == "adam(10)"
        assert "adam(1)" in phases
        exact = objective_of(problem.storage, problem.loss).estimate(stack(found.factors)).loss
        assert exact <= found.history[0].loss

    def test_a_wide_start_is_merged(self):
        problem = Problem.build(X, 2, "poisson")
        found = solved(GCPAdam(), problem, start(), max_epochs=1)
        assert [A.shape[1] for A in found.factors] == [2, 2, 2]


@pytest.mark.slow
def test_as_low_as_pyttb():
    """The same loss after the same iterations from the same start."""
    ttb = pytest.importorskip("pyttb")
    from pyttb.gcp.handles import Objectives
    from pyttb.gcp.optimizers import Adam as Theirs

    problem = Problem.build(X, 3, "poisson")
    objective = objective_of(problem.storage, problem.loss)
    iterations = 300
    rule = GCPAdam(epoch_iterations=iterations, rate=3e-3)
    ours, theirs = [], []
    for seed in range(4):
        found = solved(rule, problem, start(), seed=seed, max_epochs=1)
        ours.append(objective.estimate(stack(found.factors)).loss)
        np.random.seed(seed)  # noqa: NPY002 (pyttb draws from the global state)
        model, _, _ = ttb.gcp_opt(
            ttb.tensor(X.astype(float)), 3, Objectives.POISSON,
            Theirs(rate=3e-3, epoch_iters=iterations, max_iters=1, printitn=0),
            init=ttb.ktensor(start()), printitn=0,
        )  # fmt: skip
        factors = [A * model.weights if n == 0 else A for n, A in enumerate(model.factor_matrices)]
        theirs.append(objective.estimate(stack(factors)).loss)
    begin = objective.estimate(stack(start())).loss
    noise = np.hypot(np.std(ours, ddof=1), np.std(theirs, ddof=1))
    assert begin - np.mean(ours) > 20 * noise
    assert abs(np.mean(ours) - np.mean(theirs)) < 3 * noise
    # Adam as published has shorter first steps.
    published = solved(replace(rule, clock=1), problem, start(), max_epochs=1)
    assert np.mean(ours) < objective.estimate(stack(published.factors)).loss < begin
