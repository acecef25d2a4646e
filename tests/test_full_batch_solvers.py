"""Fits by full passes: L-BFGS-B, block mirror descent and alternating optimisation."""

import numpy as np
import pytest
from full_batch import example
from pieces import LOSSES
from scipy.optimize import minimize

from smartcpd import SparseTensor, constraints, datasets, losses, mirrors
from smartcpd._common.stacked import stack
from smartcpd._fitting.fit import fit
from smartcpd._methods.md import ModeSteps
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError
from smartcpd.metrics import factor_mse

SOLVERS = ["lbfgs", "md", "als", "hals", "row-newton", "ao-admm"]
SQUARES = ("als", "hals", "ao-admm")
COUNTS, TRUTH = datasets.count((12, 10, 8), 2, a_max=1.5, random_state=0)
SIGNED, SIGNED_TRUTH = datasets.gaussian((12, 10, 8), 2, nonnegative=False, random_state=0)
SPARSE = SparseTensor(np.argwhere(COUNTS), COUNTS[COUNTS > 0], COUNTS.shape)


def model(factors):
    return np.einsum("ir,jr,kr->ijk", *factors)


def kkt(X, found, loss, **choices):
    problem = Problem.build(X, found.model.rank, loss, **choices)
    return relative_kkt_residual(problem, stack(found.model.factors))


def descends(found):
    h = found.history.objective
    return len(h) > 1 and (np.diff(h) <= 1e-12 * np.abs(h[1:])).all()


class TestDescent:
    @pytest.mark.parametrize("solver", ["lbfgs", "md", "row-newton"])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_every_loss(self, solver, loss):
        X, factors = example(losses.get(loss))
        n = 6 if solver == "row-newton" else 40
        found = fit(X, 3, loss, solver=solver, init=factors, tol=0.0, max_epochs=n)
        assert descends(found)
        assert found.loss < found.history[0].loss
        assert found.loss == pytest.approx(found.history[-1].loss, rel=1e-12)

    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("constraint", ["free", "nonnegative", "box(0.1, 0.7)"])
    def test_bounds(self, solver, constraint):
        # Clipped factors too: the columns are polished until clipping has not raised the loss.
        found = fit(
            SIGNED, 3, constraint=constraint, solver=solver, random_state=1, tol=0.0, max_epochs=30
        )
        assert solver == "ao-admm" or descends(found)
        low, high = {"free": (-np.inf, np.inf), "nonnegative": (0, np.inf)}.get(
            constraint, (0.1, 0.7)
        )
        for A in found.model.factors:
            assert A.min() >= low
            assert A.max() <= high

    @pytest.mark.parametrize(
        "constraint", ["sparsity(0.01)", "smoothness(0.1)", "l2-ball(1.5)", "monotone", "simplex"]
    )
    def test_mirror_steps_inside_constraints_and_with_penalties(self, constraint):
        found = fit(
            COUNTS,
            2,
            "gaussian",
            constraint={1: constraint},
            solver="md",
            random_state=0,
            tol=0.0,
            max_epochs=40,
        )
        assert descends(found)

    @pytest.mark.parametrize("mirror", ["quadratic", "entropy", "burg", "power(1.5)"])
    def test_mirror_steps_with_any_map(self, mirror):
        found = fit(COUNTS, 2, "poisson", mirror=mirror, solver="md", init=TRUTH, max_epochs=40)
        assert descends(found)


class TestOptima:
    def test_lbfgs_meets_scipy_on_an_objective_of_its_own(self):
        shapes = [A.shape for A in TRUTH]
        cuts = np.cumsum([A.size for A in TRUTH])[:-1]

        def objective(x):
            A, B, C = (p.reshape(s) for p, s in zip(np.split(x, cuts), shapes, strict=True))
            M = model([A, B, C]) + 1e-9
            D = 1 - COUNTS / M
            parts = ("ijk,jr,kr->ir", B, C), ("ijk,ir,kr->jr", A, C), ("ijk,ir,jr->kr", A, B)
            gradient = np.concatenate([np.einsum(s, D, F, G).ravel() for s, F, G in parts])
            return (M - 1e-9 - COUNTS * np.log(M)).sum(), gradient

        start = np.concatenate([A.ravel() for A in TRUTH])
        other = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * start.size,
            options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 5000},
        )
        found = fit(COUNTS, 2, "poisson", solver="lbfgs", init=TRUTH, tol=0.0)
        assert found.status.converged
        assert found.loss == pytest.approx(other.fun / COUNTS.size, rel=1e-9)

    # Binary data this small is separable, and its optimum at infinity; three components of so few
    # real numbers have flat valleys.
    @pytest.mark.parametrize(
        "loss", ["poisson", "poisson-log", "negative-binomial(4)", "beta(0)", "beta(1.5)", "gamma"]
    )
    def test_lbfgs_ends_at_a_stationary_point(self, loss):
        X, factors = example(losses.get(loss))
        found = fit(X, 3, loss, solver="lbfgs", init=factors, tol=0.0)
        assert found.status.converged
        assert kkt(X, found, loss) < 1e-6

    def test_lbfgs_survives_trials_where_the_loss_overflows(self):
        X, _ = datasets.count((30, 30, 30), 4, random_state=0)
        found = fit(X, 4, "poisson-log", solver="lbfgs", random_state=0, max_epochs=150)
        assert descends(found)
        assert len(found.history) > 100

    def test_mirror_descent_on_the_simplex(self):
        X, factors = datasets.simplex((12, 11, 10), 3, random_state=0)
        found = fit(X, 3, "poisson", constraint="simplex", solver="md", tol=0.0, random_state=0)
        assert found.status.converged
        assert descends(found)
        assert factor_mse(found.model.factors, factors) < 1e-6
        for A in found.model.factors:
            np.testing.assert_allclose(A.sum(axis=0), 1, rtol=1e-12)

    def test_als_takes_the_steps_of_tensorly(self):
        parafac = pytest.importorskip("tensorly.decomposition").parafac
        rng = np.random.default_rng(0)
        start = [rng.random((n, 2)) for n in SIGNED.shape]
        weights = np.ones(2)
        theirs = parafac(SIGNED, 2, n_iter_max=7, tol=0, init=(weights, [A.copy() for A in start]))
        ours = fit(SIGNED, 2, solver="als", init=start, tol=0.0, max_epochs=7)
        np.testing.assert_allclose(
            model(ours.model.factors), theirs.to_tensor(), rtol=1e-9, atol=1e-9
        )

    def test_als_ends_where_each_factor_is_a_least_squares_solution(self):
        found = fit(SIGNED, 2, solver="als", init=SIGNED_TRUTH, tol=0.0, max_epochs=200)
        A, B, C = found.model.factors
        H = np.einsum("jr,kr->jkr", B, C).reshape(-1, 2)
        best = np.linalg.lstsq(H, SIGNED.reshape(len(A), -1).T, rcond=None)[0].T
        np.testing.assert_allclose(A, best, rtol=1e-8, atol=1e-8)
        assert factor_mse(found.model.factors, SIGNED_TRUTH) < 1e-4

    def test_als_with_bounds_ends_at_a_stationary_point(self):
        given = {"constraint": "nonnegative", "tol": 0.0, "max_epochs": 200}
        found = fit(SIGNED, 2, solver="als", random_state=0, **given)
        assert kkt(SIGNED, found, "gaussian", constraint="nonnegative") < 1e-5
        assert min(A.min() for A in found.model.factors) == 0

    def test_als_with_components_that_copy_each_other(self):
        start = [np.repeat(A[:, :1], 2, axis=1) for A in SIGNED_TRUTH]
        found = fit(SIGNED, 2, solver="als", init=start, max_epochs=20)
        assert np.isfinite(found.loss)
        assert descends(found)


class TestStorage:
    @pytest.mark.parametrize(
        ("solver", "loss"),
        [
            ("lbfgs", "poisson"),
            ("lbfgs", "bernoulli-odds"),
            ("md", "poisson"),
            ("md", "bernoulli-odds"),
            ("als", "gaussian"),
            ("hals", "gaussian"),
            ("ao-admm", "gaussian"),
            ("row-newton", "poisson"),
            ("row-newton", "bernoulli-odds"),
        ],
    )
    def test_sparse_equals_dense(self, solver, loss):
        binary = loss == "bernoulli-odds"
        dense = (COUNTS > 0).astype(float) if binary else COUNTS
        sparse = SparseTensor(SPARSE.indices, dense[dense > 0], dense.shape)
        one, two = (
            fit(X, 2, loss, solver=solver, init=TRUTH, tol=0.0, max_epochs=15)
            for X in (dense, sparse)
        )
        np.testing.assert_allclose(one.history["loss"], two.history["loss"], rtol=1e-8)
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_allclose(A, B, rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize("solver", ["mm", *SOLVERS])
    def test_unobserved_cells(self, solver):
        loss = "gaussian" if solver in SQUARES else "poisson"
        found = fit(SPARSE, 2, loss, solver=solver, init=TRUTH, absent="unobserved", max_epochs=20)
        assert descends(found)

    @pytest.mark.parametrize("solver", ["lbfgs", "md"])
    def test_backgrounds_that_have_to_be_looked_up(self, solver):
        rng = np.random.default_rng(0)
        shape, columns = (120, 100, 80), []
        for n in shape:
            A = rng.gamma(0.3, size=(n, 2))
            columns.append(A / A.sum(axis=0))
        cells = np.concatenate(
            [
                np.stack([rng.choice(len(A), 3000, p=A[:, r]) for A in columns], axis=1)
                for r in range(2)
            ]
        )
        cells = np.unique(cells, axis=0)
        X = SparseTensor(cells, np.ones(len(cells), np.uint8), shape)
        found = fit(X, 2, "bernoulli-odds", solver=solver, random_state=0, max_epochs=300)
        oracle = fit(X, 2, "bernoulli-odds", solver="mm", random_state=0)
        assert found.loss < oracle.loss * 1.002
        assert found.history[-1].loss == pytest.approx(found.loss, rel=1e-3)


class TestRuns:
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_threads_do_not_change_a_bit(self, solver):
        X, _ = datasets.count((60, 60, 60), 3, random_state=0)
        loss = "gaussian" if solver in SQUARES else "poisson"
        one, two = (
            fit(X, 3, loss, solver=solver, n_threads=n, random_state=0, max_epochs=4)
            for n in (1, 2)
        )
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_array_equal(A, B)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_the_start_is_left_alone(self, solver):
        start = [A.copy() for A in TRUTH]
        fit(COUNTS, 2, "gaussian", solver=solver, init=start, max_epochs=3)
        for A, B in zip(start, TRUTH, strict=True):
            np.testing.assert_array_equal(A, B)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_wide_starts_are_merged_and_limits_hold(self, solver):
        found = fit(COUNTS, 2, "gaussian", solver=solver, max_epochs=3, tol=0.0, random_state=0)
        assert found.model.rank == 2
        assert found.history[-1].epoch == 3
        assert found.history[0].epoch == 0
        assert "max_epochs=3" in found.status.reason
        assert (np.diff(found.history["entries"]) > 0).all()
        timed = fit(
            COUNTS,
            2,
            "gaussian",
            solver=solver,
            max_time=0.05,
            tol=0.0,
            max_epochs=10**6,
            random_state=0,
        )
        assert "max_time" in timed.status.reason or timed.status.converged

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_a_callback_ends_the_fit(self, solver):
        found = fit(COUNTS, 2, "gaussian", solver=solver, callback=lambda r: r.record.epoch == 2)
        assert "callback" in found.status.reason
        assert found.history[-1].epoch == 2


class TestRefusals:
    @pytest.mark.parametrize(
        ("solver", "loss", "choices", "message"),
        [
            ("als", "poisson", {}, "got loss 'poisson'"),
            ("als", "gaussian", {"constraint": "simplex"}, "constraint 'simplex' for mode 0"),
            ("hals", "poisson", {}, "Solver 'hals' .* got loss 'poisson'"),
            ("ao-admm", "gamma", {}, "convex in the model .* got loss 'gamma'"),
            ("brascpd", "poisson", {}, "Solver 'brascpd' .* got loss 'poisson'"),
            ("brascpd", "gaussian", {"step": "adagrad"}, "got step 'adagrad'.*solver='smd'"),
            (
                "adacpd",
                "gaussian",
                {"mirror": "entropy", "constraint": "nonnegative"},
                "got mirror 'entropy' for mode 0",
            ),
            ("lbfgs", "poisson", {"constraint": {1: "simplex"}}, "constraint 'simplex' for mode 1"),
            ("lbfgs", "gaussian", {"constraint": "sparsity(0.1)"}, "sparsity"),
        ],
    )
    def test_losses_and_constraints(self, solver, loss, choices, message):
        with pytest.raises(IncompatibleError, match=message):
            fit(COUNTS + 1, 2, loss, solver=solver, **choices)

    def test_admm_keeps_a_value_for_every_cell(self):
        with pytest.raises(IncompatibleError, match=r"'ao-admm' .* sparse data under loss 'poiss"):
            fit(SPARSE, 2, "poisson", solver="ao-admm")


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_first_mirror_step_has_a_length(size):
    """Gradients whose squares are 0 or infinite say little about it, but it is never 0."""
    steps = ModeSteps(slice(0, 2), constraints.get("nonnegative"), mirrors.get("burg"))
    A, G = np.full((2, 2), 1e-160), np.full((2, 2), size)
    assert 0 < steps.first_eta(A, G) < np.inf
