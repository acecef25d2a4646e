"""Prior work by its names: HALS, AO-ADMM, row-wise Newton, BrasCPD and AdaCPD."""

import numpy as np
import pytest
from pieces import CONSTRAINTS

import smartcpd
from smartcpd import SparseTensor, datasets
from smartcpd._fitting.fit import fit
from smartcpd.errors import IncompatibleError

COUNTS, COUNTS_TRUTH = datasets.count((12, 10, 8), 2, a_max=1.5, random_state=3)
SIGNED, SIGNED_TRUTH = datasets.gaussian((12, 10, 8), 2, nonnegative=False, random_state=0)
POSITIVE, POSITIVE_TRUTH = datasets.gaussian((12, 10, 8), 2, random_state=1)
LOGITS = [np.random.default_rng(5).normal(size=(n, 1)) for n in (12, 10, 8)]
YES_NO = (
    np.random.default_rng(6).random((12, 10, 8))
    < 1 / (1 + np.exp(-np.einsum("ir,jr,kr->ijk", *LOGITS)))
).astype(float)
LOGARITHMS = [np.log1p(A[:, :1]) for A in COUNTS_TRUTH]
CASES = {
    "squares": (SIGNED, SIGNED_TRUTH, "gaussian", {}),
    "squares, nonnegative": (POSITIVE, POSITIVE_TRUTH, "gaussian", {"constraint": "nonnegative"}),
    "squares, box": (POSITIVE, POSITIVE_TRUTH, "gaussian", {"constraint": "box(0.1, 0.8)"}),
    "counts": (COUNTS, COUNTS_TRUTH, "poisson", {}),
    "counts, multiplied": (COUNTS, LOGARITHMS, "poisson-log", {}),
    "yes/no": (YES_NO, LOGITS, "bernoulli-logit", {}),
    "odds": (YES_NO, [np.exp(0.3 * A) for A in LOGITS], "bernoulli-odds", {}),
    "gross errors": (SIGNED, SIGNED_TRUTH, "huber(0.02)", {}),
    "alpha": (COUNTS, COUNTS_TRUTH, "alpha(0.5)", {}),
}
SERVED = {
    "hals": ["squares", "squares, nonnegative", "squares, box"],
    "ao-admm": [name for name in CASES if name not in ("odds", "alpha")],
    "row-newton": list(CASES),
}


def near(truth):
    rng = np.random.default_rng(0)
    return [A * rng.uniform(0.9, 1.1, A.shape) for A in truth]


WEIGHTED = ["squares, nonnegative", "counts", "odds"]
EVERY = [
    (solver, case, weighted)
    for solver, cases in SERVED.items()
    for case in cases
    for weighted in ([False, True] if case in WEIGHTED else [False])
]


@pytest.mark.parametrize(("solver", "case", "weighted"), EVERY)
def test_ends_where_lbfgs_does(solver, case, weighted):
    X, truth, loss, choices = CASES[case]
    if weighted:
        rng = np.random.default_rng(2)
        choices = choices | {"weights": rng.uniform(0.5, 1, X.shape) * (rng.random(X.shape) < 0.9)}
    given = {"init": near(truth), "tol": 0.0, "n_threads": 1} | choices
    rank = truth[0].shape[1]
    best = fit(X, rank, loss, solver="lbfgs", max_epochs=2000, **given)
    epochs = {"hals": 400, "ao-admm": 300, "row-newton": 100}[solver]
    enough = best.loss + 0.9e-6 * abs(best.loss)
    given["callback"] = lambda report: report.record.loss <= enough
    found = fit(X, rank, loss, solver=solver, max_epochs=epochs, **given)
    assert found.loss == pytest.approx(best.loss, rel=1e-6)


def test_hals_ends_where_that_of_tensorly_does():
    theirs = pytest.importorskip("tensorly.decomposition").non_negative_parafac_hals
    start = near(POSITIVE_TRUTH)
    init = (np.ones(2), [A.copy() for A in start])
    other = theirs(POSITIVE, 2, n_iter_max=200, tol=0, init=init)
    found = fit(
        POSITIVE, 2, solver="hals", constraint="nonnegative", init=start, tol=0.0, max_epochs=400
    )
    np.testing.assert_allclose(found.model.full(), other.to_tensor(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("solver", ["hals", "ao-admm", "row-newton"])
def test_every_constraint_is_kept(solver, constraint):
    constraint = {"sparsity": "sparsity(1e-3)"}.get(constraint, constraint)
    rule = smartcpd.constraints.get(constraint)
    given = {"init": near(POSITIVE_TRUTH), "tol": 0.0, "max_epochs": 4 if solver != "hals" else 30}
    found = fit(POSITIVE, 2, "gaussian", solver=solver, constraint={1: constraint}, **given)
    h = found.history.objective
    assert h[-1] < h[1]
    assert solver == "ao-admm" or (np.diff(h[1:]) <= 1e-12 * h[0]).all()
    if rule.penalty(POSITIVE_TRUTH[1]) == 0:
        A = found.model.factors[1]
        np.testing.assert_allclose(rule.apply(A), A, rtol=1e-6, atol=1e-9)


class TestStochasticSquares:
    @pytest.mark.parametrize(("solver", "step"), [("brascpd", "constant"), ("adacpd", "adagrad")])
    def test_are_names_of_smd(self, solver, step):
        given = {"constraint": "nonnegative", "max_epochs": 15, "random_state": 0}
        one = fit(POSITIVE, 2, solver=solver, **given)
        choices = {"mirror": "quadratic", "step": step, "averaging": False, "overcomplete": 1.0}
        two = fit(POSITIVE, 2, "gaussian", solver="smd", **given, **choices)
        assert one.solver == solver
        assert one.loss < 0.1 * one.history[0].loss
        for A, B in zip(one.model.factors, two.model.factors, strict=True):
            np.testing.assert_array_equal(A, B)

    def test_take_the_steps_that_they_are_told(self):
        told = {"solver": "brascpd", "step": "diminishing(0.2)"}
        said = smartcpd.explain(POSITIVE, 2, **told)
        assert "diminishing(0.2" in said
        assert "quadratic map" in said
        assert fit(POSITIVE, 2, **told, max_epochs=1).history[-1].phase == "diminishing"

    def test_explain_refuses_what_they_do_not_serve(self):
        with pytest.raises(IncompatibleError, match="'adacpd' is least squares"):
            smartcpd.explain(COUNTS, 2, "poisson", solver="adacpd")


@pytest.mark.parametrize("solver", ["auto", "mm", "lbfgs", "smd"])
def test_sparse_counts_under_an_alpha_divergence(solver):
    X = SparseTensor(np.argwhere(COUNTS), COUNTS[COUNTS > 0], COUNTS.shape)
    given = {"init": near(COUNTS_TRUTH), "max_epochs": 200, "random_state": 0}
    best = fit(COUNTS, 2, "alpha(0.5)", solver="lbfgs", **given)
    found = fit(X, 2, "alpha(0.5)", solver=solver, **given)
    assert found.loss == pytest.approx(best.loss, rel=2e-2 if solver == "smd" else 1e-3)
    assert found.loss == pytest.approx(found.model.loss(COUNTS), rel=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_a_model_of_zero_is_no_trap_for_default_fits(masked):
    # Two starts of a descent would agree on it: where most cells are zero, 0 costs little.
    X = np.random.default_rng(0).poisson(0.05 * np.einsum("ir,jr,kr->ijk", *COUNTS_TRUTH))
    given = {"random_state": 0, "mask": np.random.default_rng(1).random(X.shape) < 0.95}
    given = given if masked else {"random_state": 0}
    assert np.mean(X == 0) > 0.7
    best = fit(X, 2, "alpha(0.5)", solver="mm", **given)
    found = fit(X, 2, "alpha(0.5)", **given)
    assert found.solver == ("mm" if masked else "few-events")
    assert found.loss < best.loss * 1.01
    assert found.loss < 0.8 * 2.0 * X.mean()
    assert "may end at 0" in smartcpd.explain(X, 2, "alpha(0.5)", **given)
