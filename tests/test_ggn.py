"""Fits by generalised Gauss-Newton, and the quadratics they minimise within bounds."""

import numpy as np
import pytest
from full_batch import example
from pieces import DISTRIBUTIONS, LOSSES
from scipy.optimize import minimize

from smartcpd import SparseTensor, datasets, losses
from smartcpd._fitting.fit import fit
from smartcpd._methods.bounded_quadratic import BoundedQuadratic
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Data, Domain

COUNTS, TRUTH = datasets.count((12, 10, 8), 2, a_max=1.5, random_state=0)
SPARSE = SparseTensor(np.argwhere(COUNTS), COUNTS[COUNTS > 0], COUNTS.shape)
SIGNED, SIGNED_TRUTH = datasets.gaussian((12, 10, 8), 2, nonnegative=False, random_state=0)


def near_truth(loss):
    """Data of known factors, and a start close to these.

    The optimum next to it is to be a regular one. Components are therefore unlike each other, and
    where a cell says little, yes or no or a very dispersed count, there are more of them.
    """
    rng = np.random.default_rng(0)
    binary = loss.data is Data.BINARY
    faint = binary or loss.name == "negative-binomial"
    shape, rank = ((24, 22, 20), 2) if faint else ((12, 11, 10), 3)
    if loss.domain is Domain.REAL:
        truth = [rng.standard_normal((n, rank)) for n in shape]
    else:
        low, high = (0.2, 1.5) if binary else (0.5, 2.0)
        truth = [rng.uniform(low, high, (n, rank)) for n in shape]
        if not binary:
            truth = [A * rng.choice([0.3, 1.0], A.shape) for A in truth]
    X = loss.simulate(np.einsum("ir,jr,kr->ijk", *truth), rng).astype(float)
    return X, [A * rng.uniform(0.9, 1.1, A.shape) for A in truth]


def descends(found):
    h = found.history.objective
    return len(h) > 1 and (np.diff(h) <= 0).all()


class TestOptima:
    @pytest.mark.parametrize("name", DISTRIBUTIONS)
    def test_ends_where_lbfgs_does_in_far_fewer_steps(self, name):
        X, start = near_truth(losses.get(name))
        rank = start[0].shape[1]
        newton, other = (
            fit(X, rank, name, solver=solver, init=start, tol=0, max_epochs=2000, random_state=0)
            for solver in ("ggn", "lbfgs")
        )
        assert newton.status.converged
        assert descends(newton)
        assert newton.loss == pytest.approx(other.loss, rel=1e-7)
        assert len(newton.history) < 0.6 * len(other.history)

    def test_a_loss_of_ones_own(self):
        pseudo_huber = losses.custom(
            lambda x, m: np.sqrt(1.0 + (x - m) ** 2),
            lambda x, m: (m - x) / np.sqrt(1.0 + (x - m) ** 2),
        )
        newton, other = (
            fit(SIGNED, 2, pseudo_huber, solver=solver, init=SIGNED_TRUTH, tol=0, random_state=0)
            for solver in ("ggn", "lbfgs")
        )
        assert newton.loss == pytest.approx(other.loss, rel=1e-9)

    def test_converges_quadratically_without_noise(self):
        X = np.einsum("ir,jr,kr->ijk", *SIGNED_TRUTH)
        rng = np.random.default_rng(0)
        start = [A + 0.05 * rng.standard_normal(A.shape) for A in SIGNED_TRUTH]
        found = fit(X, 2, solver="ggn", init=start, tol=0.0, max_epochs=12, random_state=0)
        assert found.loss < 1e-20 * found.history[0].loss

    @pytest.mark.parametrize("constraint", ["nonnegative", "box(0.1, 0.7)"])
    def test_active_bounds(self, constraint):
        newton, other = (
            fit(
                SIGNED,
                2,
                constraint=constraint,
                solver=solver,
                init=[np.clip(A, 0.2, 0.6) for A in SIGNED_TRUTH],
                tol=0.0,
                random_state=0,
            )
            for solver in ("ggn", "lbfgs")
        )
        assert newton.status.converged
        assert newton.loss == pytest.approx(other.loss, rel=1e-7)
        low = 0.1 if "box" in constraint else 0.0
        assert min(A.min() for A in newton.model.factors) == low


class TestDescent:
    @pytest.mark.parametrize("name", LOSSES)
    def test_every_loss_far_from_a_solution(self, name):
        X, factors = example(losses.get(name))
        found = fit(X, 3, name, solver="ggn", init=factors, tol=0, max_epochs=15, random_state=0)
        assert descends(found)
        assert found.loss == pytest.approx(found.history[-1].loss, rel=1e-12)

    @pytest.mark.parametrize("constraint", ["free", "nonnegative", "box(0.1, 0.7)"])
    def test_bounds(self, constraint):
        found = fit(
            SIGNED, 3, constraint=constraint, solver="ggn", random_state=1, tol=0.0, max_epochs=15
        )
        assert descends(found)
        low, high = {"free": (-np.inf, np.inf), "nonnegative": (0, np.inf)}.get(
            constraint, (0.1, 0.7)
        )
        for A in found.model.factors:
            assert A.min() >= low
            assert A.max() <= high

    def test_steps_where_the_loss_overflows(self):
        X, _ = datasets.count((20, 20, 20), 3, random_state=0)
        found = fit(X, 3, "poisson-log", solver="ggn", random_state=0, max_epochs=30)
        assert descends(found)

    def test_components_that_copy_each_other(self):
        start = [np.repeat(A[:, :1], 2, axis=1) for A in SIGNED_TRUTH]
        found = fit(SIGNED, 2, solver="ggn", init=start, max_epochs=10)
        assert np.isfinite(found.loss)
        assert descends(found)


class TestRuns:
    def test_threads_do_not_change_a_bit(self):
        X, _ = datasets.count((60, 60, 60), 3, random_state=0)
        one, two = (
            fit(X, 3, "poisson", solver="ggn", n_threads=n, random_state=0, max_epochs=3)
            for n in (1, 2)
        )
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_array_equal(A, B)

    def test_the_start_is_left_alone(self):
        start = [A.copy() for A in TRUTH]
        fit(COUNTS, 2, "poisson", solver="ggn", init=start, max_epochs=3)
        for A, B in zip(start, TRUTH, strict=True):
            np.testing.assert_array_equal(A, B)

    def test_limits(self):
        found = fit(COUNTS, 2, "poisson", solver="ggn", max_epochs=3, tol=0.0, random_state=0)
        assert found.model.rank == 2
        assert [row.epoch for row in found.history] == [0, 1, 2, 3]
        assert "max_epochs=3" in found.status.reason
        assert (np.diff(found.history["entries"]) > 0).all()
        timed = fit(COUNTS, 4, "poisson", solver="ggn", max_time=0.02, tol=0.0, random_state=0)
        assert "max_time" in timed.status.reason

    def test_a_callback_ends_the_fit(self):
        found = fit(COUNTS, 2, "poisson", solver="ggn", callback=lambda r: r.record.epoch == 2)
        assert found.history[-1].epoch == 2


class TestStorage:
    @pytest.mark.parametrize("name", ["poisson", "gaussian", "beta(1)", "beta(2)"])
    def test_sparse_equals_dense(self, name):
        one, two = (
            fit(X, 2, name, solver="ggn", init=TRUTH, tol=0.0, max_epochs=6, random_state=0)
            for X in (COUNTS, SPARSE)
        )
        np.testing.assert_allclose(one.history["loss"], two.history["loss"], rtol=1e-7)

    @pytest.mark.parametrize("name", ["poisson", "huber(2)", "gamma"])
    def test_unobserved_cells(self, name):
        newton, other = (
            fit(
                SPARSE,
                2,
                name,
                solver=solver,
                init=TRUTH,
                absent="unobserved",
                tol=0.0,
                random_state=0,
            )
            for solver in ("ggn", "lbfgs")
        )
        assert newton.status.converged
        assert newton.loss == pytest.approx(other.loss, rel=1e-7)
        assert len(newton.history) < 0.6 * len(other.history)


class TestRefusals:
    @pytest.mark.parametrize("constraint", ["simplex", "sparsity(0.1)", "monotone"])
    def test_constraints(self, constraint):
        with pytest.raises(IncompatibleError, match=r"'ggn' knows bounds.*for mode 1"):
            fit(COUNTS, 2, "gaussian", solver="ggn", constraint={1: constraint})

    def test_zeros_without_a_closed_form(self):
        X = SparseTensor(SPARSE.indices, np.ones(SPARSE.nnz), COUNTS.shape)
        with pytest.raises(IncompatibleError, match="curvature of all zeros"):
            fit(X, 2, "bernoulli-odds", solver="ggn")


class TestBoundedQuadratic:
    @staticmethod
    def quadratic(seed, low, high, singular=False):
        rng = np.random.default_rng(seed)
        n = 30
        J = rng.standard_normal((n // 2 if singular else 2 * n, n))
        B = J.T @ J + (0.1 * np.eye(n) if singular else 0.0)
        G = B @ rng.standard_normal(n)
        scale = np.diag(B)
        return B, BoundedQuadratic(
            lambda D: B @ D, lambda D: D / scale, scale, G, np.full(n, low), np.full(n, high)
        )

    @pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, np.inf), (-0.3, 0.5)])
    @pytest.mark.parametrize("singular", [False, True])
    @pytest.mark.parametrize("seed", range(5))
    def test_minimum(self, seed, singular, bounds):
        B, q = self.quadratic(seed, *bounds, singular)
        D, promised = q.minimise(1e-9, 3000)

        def value(D):
            return q.gradient @ D + 0.5 * D @ B @ D, q.gradient + B @ D

        best = minimize(
            value,
            np.zeros_like(D),
            jac=True,
            method="L-BFGS-B",
            bounds=[bounds] * D.size,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20000, "maxfun": 40000},
        )
        assert promised == pytest.approx(-value(D)[0], rel=1e-9)
        assert promised >= -best.fun * (1 - 1e-6)
        assert (q.low <= D).all()
        assert (q.high >= D).all()

    @pytest.mark.parametrize("limit", [1, 2, 5, 10])
    def test_any_number_of_products_leads_downhill(self, limit):
        for seed in range(10):
            _, q = self.quadratic(seed, -0.2, 0.3)
            _, promised = q.minimise(0.0, limit)
            assert promised > 0
