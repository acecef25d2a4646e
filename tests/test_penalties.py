"""Ridge, sums of penalties, and the choice of their weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

import smartcpd
from smartcpd import (
    CPModel,
    SmartCPD,
    SparseTensor,
    constraints,
    datasets,
    explain,
    losses,
    metrics,
)
from smartcpd._fitting.fit import fit
from smartcpd._problem.problem import Problem
from smartcpd._strategies import registry
from smartcpd.errors import IncompatibleError, InvalidParameterError

QUADRATIC = [name for name, c in constraints.registry.classes.items() if c.is_quadratic]
OTHERS = [name for name in constraints.names() if name not in QUADRATIC]
SUMS = [f"{q}(0.7) + {other}" for q in QUADRATIC for other in OTHERS]
SUMS += ["smoothness(2) + ridge(0.3)", "smoothness(2) + ridge(0.3) + sparsity(0.2)"]
CONVEX = [name for name in SUMS if "unimodal" not in name]
SERVED = ("md", "row-newton", "lbfgs")
SHAPE, RANK = (9, 8, 7), 2


def point(seed=0, rows=8, columns=2):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=1.5, size=(rows, columns)), 10 ** rng.uniform(-1, 1, (rows, columns))


def cost(c, A, Z, Gamma):
    return 0.5 * float(np.sum(Gamma * (A - Z) ** 2)) + c.penalty(A)


def reference(c, z, gamma):
    """The lowest cost of one column, by SciPy: sizes are sums of two nonnegative halves."""
    n = z.size
    other = c.other
    low, high = -np.inf, np.inf
    limits = []
    total = np.hstack([np.eye(n), -np.eye(n)])
    if other is not None:
        if other.name in ("nonnegative", "simplex"):
            low = 0.0
        if other.name == "box":
            low, high = other.bounds
        if other.name == "simplex":
            limits.append(LinearConstraint(total.sum(axis=0), 1.0, 1.0))
        if other.name == "l1-ball":
            limits.append(LinearConstraint(np.ones(2 * n), -np.inf, other.radius))
        if other.name == "l2-ball":
            limits.append(
                NonlinearConstraint(lambda u: np.sum((total @ u) ** 2), -np.inf, other.radius**2)
            )
        if other.name == "monotone":
            limits.append(LinearConstraint(np.diff(np.eye(n), axis=0) @ total, 0.0, np.inf))
        if other.name == "box":
            limits.append(LinearConstraint(total, low, high))
    weight = sum(p.weight for p in c.parts if p.name == "sparsity")
    smooth = [p for p in c.parts if p.is_quadratic]

    def value(u):
        a = total @ u
        quadratic = sum(p.penalty(a[:, None]) for p in smooth)
        return 0.5 * np.sum(gamma * (a - z) ** 2) + quadratic + weight * u.sum()

    ends = [(0.0, None)] * n + [(0.0, 0.0 if low == 0.0 else None)] * n
    start = np.concatenate([np.maximum(z, 0.1), np.maximum(-z, 0.0)]) / (2 * n)
    found = minimize(
        value,
        start,
        bounds=ends,
        constraints=limits,
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return found.fun


@pytest.mark.parametrize("name", CONVEX)
def test_no_independent_solver_finds_a_lower_cost(name):
    c = constraints.get(name).within(nonnegative=False)
    Z, Gamma = point()
    A = c.apply(Z, Gamma)
    for r in range(Z.shape[1]):
        own = cost(c, A[:, r : r + 1], Z[:, r : r + 1], Gamma[:, r : r + 1])
        wanted = reference(c, Z[:, r], Gamma[:, r])
        assert own <= wanted + 1e-6 * max(1.0, abs(wanted))


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_no_point_nearby_is_better(name, nonnegative):
    c = constraints.get(name).within(nonnegative=nonnegative)
    Z, Gamma = point()
    A = c.apply(Z, Gamma)
    assert np.isfinite(A).all()
    assert c.signed or (A >= 0).all()
    rng = np.random.default_rng(1)
    lowest = cost(c, A, Z, Gamma)
    for size in (1e-3, 1e-1):
        for _ in range(10):
            moved = A + size * rng.normal(size=A.shape)
            near = moved if c.other is None else c.other.apply(moved)
            near = near if c.signed else np.maximum(near, 0.0)
            assert cost(c, near, Z, Gamma) >= lowest - 1e-9


@pytest.mark.parametrize("name", [*QUADRATIC, *SUMS])
def test_a_slope_is_the_derivative_of_the_penalty(name):
    c = constraints.get(name).within(nonnegative=True)
    if c.smooth_within is None:
        pytest.skip("not smooth")
    A, _ = point()
    A = np.abs(A) + 0.1
    slope, step = c.penalty_slope(A), 1e-6
    for place in ((0, 0), (3, 1), (7, 0)):
        ends = []
        for sign in (1, -1):
            B = A.copy()
            B[place] += sign * step
            ends.append(c.penalty(B))
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope[place], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("text", SUMS)
def test_a_sum_is_read_as_it_is_written(text):
    c = constraints.get(text)
    assert constraints.get(str(c)) == c
    assert constraints.Added(c.parts) == c
    first, *rest = text.split(" + ")
    assert constraints.get("+".join([*rest[::-1], first])).parts[-1] == constraints.get(first)


@pytest.mark.parametrize(
    "text", ["sparsity(1) + simplex", "box(0, 1) + nonnegative", "ridge(1) + ", "ridge(1) + wrong"]
)
def test_what_is_no_sum_is_refused(text):
    with pytest.raises(InvalidParameterError):
        constraints.get(text)


def test_bounds_of_entries_are_no_penalty():
    with pytest.raises(InvalidParameterError, match="single entries"):
        constraints.Added((constraints.get("ridge(1)"), constraints.box(0, np.ones((3, 2)))))


def planted(name, seed=0):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, SHAPE[0])
    smooth = np.stack([np.exp(-((t - 0.3) ** 2) / 0.05), np.exp(-((t - 0.8) ** 2) / 0.05)], axis=1)
    truth = [smooth, *(rng.gamma(2.0, 0.7, (size, RANK)) for size in SHAPE[1:])]
    return losses.get(name).simulate(np.asarray(CPModel(truth).full()), rng), truth


@pytest.mark.parametrize("store", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("name", "penalty"),
    [
        ("gaussian", "ridge(0.02)"),
        ("gaussian", "ridge(0.02) + smoothness(0.05)"),
        ("poisson", "ridge(0.02) + sparsity(0.01)"),
        ("poisson", "smoothness(0.05) + nonnegative"),
        ("poisson", "smoothness(0.02) + ridge(0.01) + sparsity(0.01)"),
        ("negative-binomial(3)", "ridge(0.01) + sparsity(0.01)"),
    ],
)
def test_a_convex_subproblem_ends_where_an_independent_solver_does(name, penalty, store):
    X, truth = planted(name)
    loss = losses.get(name)
    others = np.einsum("jr,kr->jkr", truth[1], truth[2]).reshape(-1, RANK)
    rule = constraints.get(penalty).within(nonnegative=loss.domain is losses.Domain.NONNEGATIVE)

    def objective(a):
        A = a.reshape(SHAPE[0], RANK)
        cells = (A @ others.T).reshape(-1)
        values = loss.values_at(X.reshape(-1).astype(float), cells)
        return float(values.mean()) + rule.penalty(A)

    low = None if rule.signed else 0.0
    wanted = minimize(
        objective,
        np.full(SHAPE[0] * RANK, 0.5),
        bounds=[(low, None)] * (SHAPE[0] * RANK),
        method="L-BFGS-B",
        options={"maxfun": 100_000, "maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    data = X if store == "dense" else SparseTensor(np.argwhere(X), X[X != 0], X.shape)
    fixed = {1: truth[1], 2: truth[2]}
    est = SmartCPD(RANK, name, constraint={0: penalty}, fixed=fixed, tol=1e-8, random_state=0).fit(
        data
    )
    assert est.solver_ == "lbfgs"
    assert est.history_[-1].objective == pytest.approx(wanted.fun, abs=1e-6)
    assert objective(est.factors_[0].reshape(-1)) == pytest.approx(wanted.fun, abs=1e-6)


@pytest.mark.parametrize("weight", ["ridge", "sparsity"])
def test_the_path_of_an_elastic_net_is_monotone(weight):
    X, truth = planted("gaussian")
    fixed = {1: truth[1], 2: truth[2]}
    losses_seen, sizes, zeros = [], [], []
    for price in (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        pair = {"ridge": 0.01, "sparsity": 0.01} | {weight: price}
        net = f"ridge({pair['ridge']}) + sparsity({pair['sparsity']}, nonnegative=True)"
        est = SmartCPD(
            RANK, "gaussian", constraint={0: net}, fixed=fixed, tol=1e-6, random_state=0
        ).fit(X)
        A = est.factors_[0]
        losses_seen.append(est.loss_)
        sizes.append(float(np.sum(A**2) if weight == "ridge" else np.sum(np.abs(A))))
        zeros.append(int((A == 0).sum()))
    assert (np.diff(losses_seen) >= -1e-7).all()
    assert (np.diff(sizes) <= 1e-5).all()
    assert weight == "ridge" or zeros[-1] > zeros[0]


@pytest.mark.parametrize("solver", SERVED)
def test_methods_that_serve_sums_agree(solver):
    X, truth = planted("poisson")
    rule = {
        0: "smoothness(0.01) + ridge(0.001)",
        1: "ridge(0.001) + sparsity(0.001)",
        2: "ridge(0.01)",
    }
    options = {"constraint": rule, "init": truth, "tol": 1e-4, "random_state": 0}
    usual = SmartCPD(RANK, "poisson", **options).fit(X)
    est = SmartCPD(RANK, "poisson", solver=solver, **options).fit(X)
    assert est.history_[-1].objective == pytest.approx(usual.history_[-1].objective, abs=2e-4)


def test_other_solvers_refuse_by_name():
    X, _ = planted("gaussian")
    problem = Problem.build(X, RANK, "gaussian", constraint="ridge(0.1) + sparsity(0.1)")
    for name in set(registry.names()) - {registry.AUTO, *SERVED}:
        with pytest.raises(IncompatibleError, match=f"Solver '{name}'"):
            registry.check(registry.get(name), problem)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("loss", ["gaussian", "poisson"])
def test_the_default_serves_every_sum(name, loss):
    X, _ = planted(loss)
    rule = {0: name.replace("0.7", "0.001"), 1: "ridge(0.001)", 2: "ridge(0.001)"}
    est = SmartCPD(RANK, loss, constraint=rule, effort=0, max_epochs=3, random_state=0).fit(X)
    assert np.isfinite(est.loss_)
    assert est.solver_ in SERVED


def test_a_shared_factor_is_penalised_once():
    rng = np.random.default_rng(0)
    A = rng.gamma(2.0, 0.7, (8, RANK))
    X = rng.poisson(A @ A.T)
    est = SmartCPD(RANK, "poisson", same=[(0, 1)], constraint={0: "ridge(0.1)"}, random_state=0)
    est.fit(X)
    np.testing.assert_array_equal(est.factors_[0], est.factors_[1])
    assert est.history_[-1].penalty == pytest.approx(0.05 * np.sum(est.factors_[0] ** 2), rel=1e-3)


def test_weights_are_chosen_by_held_out_likelihood():
    X, truth = planted("poisson")
    weak, strong = (dict.fromkeys(range(3), f"ridge({w})") for w in (1e-4, 10.0))
    found = smartcpd.select(
        X, [RANK], "poisson", cv=2, n_restarts=1, n_jobs=1, random_state=0, penalties=[strong, weak]
    )
    assert found.penalty == weak
    assert [row.chosen for row in found.penalty_rows] == [False, True]
    assert found.penalty_rows[0].behind > found.penalty_rows[0].behind_error > 0
    assert "<- chosen" in str(found)
    assert metrics.factor_match_score(found.model, truth) > 0.8
    with pytest.raises(InvalidParameterError, match="list of choices"):
        smartcpd.select(X, [1], "poisson", penalties="ridge(1)", n_restarts=1, cv=2)
    with pytest.raises(IncompatibleError, match="several of the same kind"):
        smartcpd.select(
            X, [1], "poisson", penalties=[weak], constraint="ridge(1)", n_restarts=1, cv=2, n_jobs=1
        )


@pytest.mark.parametrize(
    ("constraint", "escapes"),
    [
        ({0: "sparsity(0.1)"}, True),
        ({0: "smoothness(0.1)", 1: "l2-ball", 2: "ridge(0.1)"}, False),
        ({1: "ridge(0.1) + box(0, 2)", 2: "simplex"}, True),
        ({1: "ridge(0.1) + simplex"}, False),
        ({0: "ridge(0)"}, False),
        ("ridge(0.1)", False),
        ("unimodal", False),
    ],
)
def test_a_penalty_that_scale_escapes_is_told(constraint, escapes):
    """Its columns shrink while others grow: what has no minimum does not converge."""
    X, _ = datasets.count((8, 7, 6), 2, random_state=0)
    asked = {"rank": 2, "loss": "poisson", "constraint": constraint}
    found = fit(X, **asked, random_state=0, progress=False)
    assert ("There is no minimum: penalty" in found.status.reason) == escapes
    assert ("give mode" in explain(X, **asked)) == escapes
    if escapes:
        assert not found.status.converged
        assert "Converged" not in found.status.reason
