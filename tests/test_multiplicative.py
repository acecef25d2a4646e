"""Multiplicative updates: beta-divergences factor by factor, and mixtures on the simplex."""

import warnings

import numpy as np
import pytest
from full_batch import unfolded
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import non_negative_factorization

from smartcpd import SparseTensor, datasets, losses
from smartcpd._common import threads
from smartcpd._common.stacked import parts, stack
from smartcpd._fitting.fit import fit
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mm import Passes
from smartcpd._methods.multiplicative import Factors, Updates
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError
from smartcpd.metrics import factor_mse

LOSSES = ["gamma", "beta(0.5)", "beta(1.5)", "beta(3)", "gaussian"]
EPS = 1e-9


def tensor(shape, rank, seed, zeros=0.0):
    """Data, and factors that are not those of the data."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, 1.0, shape) * (rng.random(shape) >= zeros)
    return X, [rng.uniform(0.01, 2.0, (size, rank)) for size in shape]


def problem(X, rank, loss, constraint="nonnegative", **choices):
    return Problem.build(X, rank, loss, constraint=constraint, **choices)


def sparse(X):
    return SparseTensor(np.argwhere(X), X[X > 0], X.shape)


def kkt(X, found, loss, constraint="nonnegative"):
    fitted = problem(X, found.model.rank, loss, constraint)
    return relative_kkt_residual(fitted, stack(found.model.factors))


def descends(found):
    h = found.history["loss"]
    return len(h) > 1 and (np.diff(h) <= 1e-12 * np.abs(h[1:])).all()


def run(X, rank, loss, constraint="nonnegative", **choices):
    options = {"solver": "mm", "tol": 0.0, "max_epochs": 60, "random_state": 0}
    return fit(X, rank, loss, constraint=constraint, **(options | choices))


class TestUpdates:
    @pytest.mark.parametrize("loss", LOSSES)
    @given(
        shape=st.lists(st.integers(1, 5), min_size=2, max_size=4),
        rank=st.integers(1, 4),
        seed=st.integers(0, 2**16),
        scale=st.sampled_from([1e-2, 1.0, 1e3]),
    )
    @settings(max_examples=12, deadline=None)
    def test_none_raises_the_loss(self, loss, shape, rank, seed, scale):
        X, factors = tensor(tuple(shape), rank, seed, 0.0 if loss == "gamma" else 0.3)
        X[(0,) * X.ndim] = 1.0
        with threads.limited_to(1):
            updates = Updates.over(problem(scale * X, rank, loss), 1)
            value, point = updates.step(Factors.of(stack(factors)), careful=True)
            rounding = 1e-12 * (1 + abs(value))
            for _ in range(5):
                before = value
                value, point = updates.step(point, careful=True)
                assert value <= before + rounding

    @pytest.mark.parametrize("loss", [*LOSSES, "beta(1)"])
    @pytest.mark.parametrize("mode", [0, 1, 2])
    def test_terms_are_the_sums_of_the_formula(self, loss, mode):
        X, factors = tensor((6, 5, 4), 3, 0)
        beta = losses.get(loss).divergence
        updates = Updates.over(problem(X, 3, loss), 1)
        value, N, D = updates.terms(stack(factors), mode)
        X_n, M, H = unfolded(X, factors, mode)
        u = M if loss == "gaussian" else M + EPS
        np.testing.assert_allclose(N, (X_n * u ** (beta - 2)) @ H / X.size, rtol=1e-9)
        np.testing.assert_allclose(D, u ** (beta - 1) @ H / X.size, rtol=1e-9)
        whole = updates.objective.estimate(stack(factors)).loss
        assert value == pytest.approx(whole, rel=1e-12)

    @pytest.mark.parametrize("loss", ["gaussian", "beta(2)"])
    def test_terms_of_sparse_data_are_those_of_dense(self, loss):
        X, factors = tensor((6, 5, 4), 3, 0, 0.6)
        for mode in range(3):
            one, two = (
                Updates.over(problem(data, 3, loss), 1).terms(stack(factors), mode)
                for data in (X, sparse(X))
            )
            for a, b in zip(one, two, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9)

    @pytest.mark.parametrize(
        ("loss", "theirs"),
        [("gamma", 0), ("beta(0.5)", 0.5), ("beta(1.5)", 1.5), ("gaussian", 2), ("beta(3)", 3)],
    )
    def test_sweeps_are_those_of_scikit_learn(self, loss, theirs):
        X, (W, H) = tensor((12, 9), 3, 0)
        updates, point = Updates.over(problem(X, 3, loss), 1), Factors.of(stack([W, H]))
        for _ in range(5):
            _, point = updates.step(point, careful=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            W5, H5, _ = non_negative_factorization(
                X,
                W.copy(),
                H.T.copy(),
                n_components=3,
                init="custom",
                solver="mu",
                beta_loss=theirs,
                max_iter=5,
                tol=0,
            )
        np.testing.assert_allclose(point.A, stack([W5, H5.T]), rtol=1e-5)


class TestFits:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_loss_goes_down_with_extrapolation(self, loss):
        X, factors = tensor((7, 6, 5), 3, 1)
        found = run(X, 3, loss, init=factors)
        assert descends(found)
        assert found.loss == pytest.approx(found.history[-1].loss, rel=1e-12)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_it_ends_at_a_stationary_point(self, loss):
        X, truth = datasets.gamma((12, 10, 8), 2, snr=15, random_state=0)
        found = run(X, 2, loss, init=truth, max_epochs=600)
        assert kkt(X, found, loss) < 1e-5
        other = fit(X, 2, loss, constraint="nonnegative", solver="lbfgs", init=truth, tol=0.0)
        assert found.loss == pytest.approx(other.loss, abs=1e-9 * max(1, abs(other.loss)))

    @pytest.mark.parametrize(("loss", "theirs"), [("gamma", 0), ("gaussian", 2), ("beta(3)", 3)])
    def test_as_good_as_scikit_learn(self, loss, theirs):
        X, _ = datasets.gamma((20, 15), 2, snr=20, random_state=3)
        _, start = tensor(X.shape, 2, 0)
        found = run(X, 2, loss, init=start, max_epochs=1500)
        W, H, _ = non_negative_factorization(
            X,
            start[0].copy(),
            start[1].T.copy(),
            n_components=2,
            init="custom",
            solver="mu",
            beta_loss=theirs,
            max_iter=20_000,
            tol=1e-10,
        )
        objective = Updates.over(problem(X, 2, loss), 1).objective
        reached = objective.estimate(stack([W, H.T])).loss
        assert found.loss == pytest.approx(reached, abs=1e-6)

    def test_beta_one_is_poisson(self):
        X, factors = tensor((7, 6, 5), 3, 1)
        one, two = (run(X, 3, loss, init=factors) for loss in ("beta(1)", "poisson"))
        np.testing.assert_allclose(one.history["loss"] - EPS, two.history["loss"], rtol=1e-10)
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_allclose(A, B, rtol=1e-6, atol=1e-9)

    def test_it_finds_planted_factors(self):
        X, truth = datasets.gamma((20, 18, 16), 3, snr=30, random_state=0)
        found = run(X, 3, "gamma", max_epochs=1000)
        assert factor_mse(found.model.factors, truth) < 1e-3

    def test_zeros_of_a_start_can_grow(self):
        X, truth = datasets.gamma((12, 10, 8), 2, snr=20, random_state=0)
        start = [A.copy() for A in truth]
        start[0][:6] = 0.0
        found = run(X, 2, "gaussian", init=start, max_epochs=300)
        assert kkt(X, found, "gaussian") < 1e-4

    @pytest.mark.parametrize("loss", ["gaussian", "beta(2)"])
    def test_sparse_equals_dense(self, loss):
        X, factors = tensor((8, 7, 6), 2, 0, 0.6)
        one, two = (run(data, 2, loss, init=factors) for data in (X, sparse(X)))
        np.testing.assert_allclose(one.history["loss"], two.history["loss"], rtol=1e-9)

    @pytest.mark.parametrize(
        ("loss", "constraint"), [("gamma", "nonnegative"), ("poisson", "simplex")]
    )
    def test_threads_do_not_change_a_bit(self, loss, constraint):
        X, _ = datasets.gamma((60, 60, 60), 3, random_state=0)
        one, two = (run(X, 3, loss, constraint, n_threads=n, max_epochs=4) for n in (1, 2))
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_array_equal(A, B)


class TestSimplex:
    @pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds"])
    @pytest.mark.parametrize("modes", [(0, 1, 2), (0,), (1, 2)])
    @pytest.mark.parametrize("as_sparse", [False, True])
    def test_columns_sum_to_one_and_the_loss_goes_down(self, loss, modes, as_sparse):
        X, _ = tensor((7, 6, 5), 3, 2, 0.5)
        X = (X > 0).astype(float)
        X[:, 0] = 0.0
        found = run(sparse(X) if as_sparse else X, 3, loss, dict.fromkeys(modes, "simplex"))
        assert descends(found)
        assert found.loss == pytest.approx(found.history[-1].loss, rel=1e-12)
        for mode in modes:
            np.testing.assert_allclose(found.model.factors[mode].sum(axis=0), 1, rtol=1e-12)

    @pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds"])
    @given(seed=st.integers(0, 2**16), rank=st.integers(1, 4))
    @settings(max_examples=12, deadline=None)
    def test_no_step_with_held_weights_raises_the_loss(self, loss, seed, rank):
        X, factors = tensor((5, 4, 3), rank, seed, 0.5)
        X = (X > 0).astype(float)
        X[0, 0, 0] = 1.0
        with threads.limited_to(1):
            passes = Passes.over(problem(X, rank, loss, "simplex"), 1)
            point, before = Mixture.of(stack([A / A.sum(axis=0) for A in factors]), X.shape), np.inf
            for _ in range(6):
                value, point = passes.step(point, careful=True)
                assert value <= before + 1e-12 * abs(before)
                before = value
                np.testing.assert_allclose(point.weights, 1.0, rtol=1e-12)
                for F in parts(point.columns, X.shape):
                    np.testing.assert_allclose(F.sum(axis=0), 1.0, rtol=1e-12)

    def test_it_finds_planted_distributions(self):
        X, truth = datasets.simplex((12, 11, 10), 3, random_state=0)
        found = run(X, 3, "poisson", "simplex", max_epochs=2000)
        assert descends(found)
        assert factor_mse(found.model.factors, truth) < 1e-6

    @pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds"])
    def test_it_ends_where_mirror_descent_does(self, loss):
        X, truth = datasets.simplex((10, 9, 8), 2, events=3000.0, random_state=0)
        if loss == "bernoulli-odds":
            X = (X > 0).astype(float)
        ours, theirs = (
            run(X, 2, loss, "simplex", solver=solver, init=truth, max_epochs=600)
            for solver in ("mm", "md")
        )
        assert ours.loss <= theirs.loss + 1e-7 * abs(theirs.loss)
        assert kkt(X, ours, loss, "simplex") < 1e-4

    def test_on_some_modes_it_is_the_plain_mixture(self):
        X, (A, B, C) = tensor((7, 6, 5), 3, 1)
        start = [A / A.sum(axis=0), B * A.sum(axis=0), C]
        plain, some = (
            run(X, 3, "poisson", constraint, init=start)
            for constraint in ("nonnegative", {0: "simplex"})
        )
        np.testing.assert_allclose(some.history["loss"], plain.history["loss"], rtol=1e-9)
        one, two = (np.einsum("ir,jr,kr->ijk", *f.model.factors) for f in (plain, some))
        np.testing.assert_allclose(one, two, rtol=1e-6)

    def test_components_that_are_gone_keep_to_the_simplex(self):
        X, factors = tensor((7, 6, 5), 2, 1)
        mixture = Mixture.of(stack(factors), X.shape)
        mixture = Mixture(mixture.columns * [1, 0], mixture.weights * [1, 0], X.shape)
        A, B, C = parts(mixture.carried_by((2,)), X.shape)
        np.testing.assert_allclose(A.sum(axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose(B.sum(axis=0), 1, rtol=1e-12)
        assert (C[:, 1] == 0).all()


class TestRefusals:
    X, _ = tensor((5, 4, 3), 2, 0, 0.5)

    @pytest.mark.parametrize(
        ("loss", "choices", "message"),
        [
            ("huber(1)", {}, "got loss 'huber"),
            ("gaussian", {"constraint": "free"}, "constraint='nonnegative'"),
            ("beta(1.5)", {"constraint": {1: "simplex"}}, "'simplex' for mode 1"),
            ("poisson", {"constraint": {2: "box(0, 1)"}}, "for mode 2"),
        ],
    )
    def test_losses_and_constraints(self, loss, choices, message):
        with pytest.raises(IncompatibleError, match=message):
            run(self.X, 2, loss, **choices)

    def test_sparse_data_without_a_closed_form(self):
        with pytest.raises(IncompatibleError, match="dense array"):
            run(sparse(self.X), 2, "beta(1.5)")

    def test_negative_data(self):
        with pytest.raises(IncompatibleError, match=r"X has -0\.5"):
            run(self.X - 0.5 * (self.X == 0), 2, "gaussian")
