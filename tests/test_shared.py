"""Modes that share a factor."""

from __future__ import annotations

import numpy as np
import pytest
from pieces import DISTRIBUTIONS

from smartcpd import (
    CPModel,
    LabelledTensor,
    Mode,
    SmartCPD,
    SparseTensor,
    explain,
    losses,
    metrics,
)
from smartcpd._common.stacked import parts, stack
from smartcpd._objectives import objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem
from smartcpd._problem.shared import SharedModes
from smartcpd._strategies import registry
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.partitions import write_tensor

N, DAYS, RANK = 9, 7, 2
SHARED = ("quasi-newton", "lbfgs", "ggn")


def network(name="poisson", seed=0, symmetric=True, n=N, days=DAYS):
    """Planted data of a loss whose first two modes have one factor, and its factors."""
    rng = np.random.default_rng(seed)
    loss = losses.get(name)
    low = 0.0 if loss.domain is losses.Domain.NONNEGATIVE else 0.9
    A, C = (rng.gamma(2.0, 0.7, (size, RANK)) - low for size in (n, days))
    truth = [A, A, C]
    X = loss.simulate(np.asarray(CPModel(truth).full()), rng)
    if symmetric:
        upper = np.triu(np.ones((n, n), bool))[:, :, None]
        X = np.where(upper, X, X.swapaxes(0, 1))
    return X, truth


def sparse(X, **options):
    return SparseTensor(np.argwhere(X), X[X != 0], X.shape, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_shared_factor_is_one_and_fits_as_well_with_half_the_numbers(name):
    X, truth = network(name)
    est = SmartCPD(RANK, name, same=[(0, 1)], random_state=0).fit(X)
    np.testing.assert_array_equal(est.factors_[0], est.factors_[1])
    model = CPModel(truth, loss_function=name)
    assert est.loss_ <= model.loss(X) + 1e-9
    free = SmartCPD(RANK, name, random_state=0).fit(X)
    # The free fit has more to choose from; of symmetric data it makes no use of that.
    problems = [Problem.build(X, RANK, name, same=s) for s in (None, [(0, 1)])]
    resolution = CellSample(problems[0]).resolution(stack(free.factors_))
    assert est.loss_ <= free.loss_ + 0.1 * resolution
    counted = [problem.freedom for problem in problems]
    assert counted == [RANK * (2 * N + DAYS - 2), RANK * (N + DAYS - 1)]


def test_gradients_of_a_shared_factor_are_added():
    X, truth = network()
    shared = SharedModes(((0, 1),), X.shape)
    loss = losses.get("poisson")
    objective = objective_of(Problem.build(X, RANK, loss).storage, loss)
    B = [A + 0.1 for A in truth]
    gradient = parts(2 * shared.mean(objective.gradient(stack(B))[1]), X.shape)[0]
    step = 1e-6
    for i, r in ((0, 0), (4, 1)):
        ends = []
        for sign in (1, -1):
            A = B[0].copy()
            A[i, r] += sign * step
            ends.append(objective.estimate(stack([A, A, B[2]])).loss)
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient[i, r], rel=1e-5)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "bernoulli-odds", "negative-binomial(2)"])
def test_sparse_data_gives_the_same(name):
    X, truth = network(name)
    found = [
        SmartCPD(RANK, name, same=[(0, 1)], init=truth, tol=1e-4, random_state=0).fit(data)
        for data in (X, sparse(X))
    ]
    np.testing.assert_array_equal(found[1].factors_[0], found[1].factors_[1])
    assert found[1].loss_ == pytest.approx(found[0].loss_, abs=1e-6)


def test_data_that_is_not_symmetric_is_fitted_by_its_mean_with_the_transpose():
    X, _ = network("gaussian", symmetric=False)
    assert not np.array_equal(X, X.swapaxes(0, 1))
    options = {"same": [(0, 1)], "tol": 1e-6, "random_state": 0}
    one = SmartCPD(RANK, "gaussian", **options).fit(X)
    two = SmartCPD(RANK, "gaussian", **options).fit(0.5 * (X + X.swapaxes(0, 1)))
    np.testing.assert_allclose(one.model_.full(), two.model_.full(), atol=1e-5)


@pytest.mark.parametrize("store", ["dense", "sparse"])
def test_half_of_symmetric_data_says_as_much(store):
    X, _ = network()
    half = np.broadcast_to(np.triu(np.ones((N, N), bool))[:, :, None], X.shape)
    options = {"same": [(0, 1)], "tol": 1e-5, "random_state": 0}
    twice = np.where(np.eye(N, dtype=bool)[:, :, None], 1.0, 2.0)
    weighted = SmartCPD(RANK, "poisson", **options).fit(X, weights=np.where(half, twice, 0.0))
    if store == "dense":
        masked = SmartCPD(RANK, "poisson", **options).fit(np.where(half, X, 1), mask=half)
    else:
        hidden = np.argwhere(~half)
        masked = SmartCPD(RANK, "poisson", **options).fit(
            sparse(np.where(half, X, 0), missing=hidden)
        )
    whole = SmartCPD(RANK, "poisson", **options).fit(X)
    np.testing.assert_allclose(weighted.model_.full(), whole.model_.full(), atol=1e-3)
    np.testing.assert_array_equal(masked.factors_[0], masked.factors_[1])
    assert metrics.factor_mse(masked.factors_, whole.factors_) < 0.1


@pytest.mark.parametrize("solver", SHARED)
def test_methods_that_serve_shared_factors_agree(solver):
    X, truth = network()
    usual = SmartCPD(RANK, "poisson", same=[(0, 1)], random_state=0).fit(X)
    est = SmartCPD(
        RANK, "poisson", same=[(0, 1)], solver=solver, init=truth, tol=1e-4, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(est.factors_[0], est.factors_[1])
    assert est.loss_ == pytest.approx(usual.loss_, abs=1e-5)


def test_all_others_refuse_by_name():
    X, _ = network()
    problem = Problem.build(X, RANK, "gaussian", same=[(0, 1)])
    for name in set(registry.names()) - {registry.AUTO, *SHARED}:
        with pytest.raises(IncompatibleError, match=f"Solver '{name}'"):
            registry.check(registry.get(name), problem)


@pytest.mark.parametrize("kind", ["dense", "zero", "unobserved", "array on disk", "parts"])
def test_the_default_always_finds_one_that_can(kind, tmp_path):
    X, _ = network()
    limit = 100_000
    if kind in ("array on disk", "parts"):
        X = network(n=40, days=30)[0]
    if kind in ("zero", "unobserved"):
        X = sparse(X, absent=kind)
    elif kind == "array on disk":
        np.save(tmp_path / "x.npy", X.astype(np.float32))
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "parts":
        X = write_tensor(tmp_path / "x.parts", sparse(X), part_bytes=20_000)
        limit = 250_000
    options = {"same": [(0, 1)], "max_memory": limit}
    solver = "lbfgs" if kind in ("array on disk", "parts") else "quasi-newton"
    assert f"solver {solver}" in explain(X, RANK, "poisson", **options)
    est = SmartCPD(RANK, "poisson", random_state=0, effort=0, max_epochs=3, **options).fit(X)
    np.testing.assert_array_equal(est.factors_[0], est.factors_[1])
    known = np.ones((X.shape[0], RANK))
    for told in ({"fixed": {0: known}}, {"constraint": "ridge(0.001) + sparsity(0.001)"}):
        est = SmartCPD(
            RANK, "poisson", random_state=0, effort=0, max_epochs=3, max_memory=limit, **told
        ).fit(X)
        assert "fixed" not in told or (est.factors_[0] == known).all()


def test_all_modes_may_share_one_factor_and_groups_may_touch():
    rng = np.random.default_rng(0)
    A = rng.gamma(2.0, 0.7, (N, RANK))
    X = rng.poisson(np.asarray(CPModel([A, A, A]).full()))
    est = SmartCPD(RANK, "poisson", same=[(0, 1), (1, 2)], random_state=0).fit(X)
    for B in est.factors_[1:]:
        np.testing.assert_array_equal(B, est.factors_[0])
    assert metrics.factor_mse(est.factors_, [A, A, A]) < 0.05


def test_known_entries_and_constraints_hold_for_all_modes_of_a_group():
    X, truth = network()
    est = SmartCPD(RANK, "poisson", same=[(0, 1)], fixed={0: truth[0]}, random_state=0).fit(X)
    for mode in (0, 1):
        np.testing.assert_array_equal(est.factors_[mode], truth[0])
    est = SmartCPD(
        RANK, "gaussian", same=[(0, 1)], constraint={1: "nonnegative"}, random_state=0
    ).fit(X.astype(float))
    assert (est.factors_[0] >= 0).all()


def test_labels_of_modes_must_be_the_same():
    X, _ = network()
    people = [f"person {n}" for n in range(N)]
    modes = [Mode("from", people), Mode("to", people), Mode("day", range(DAYS))]
    est = SmartCPD(RANK, "poisson", same=[("from", "to")], random_state=0).fit(
        LabelledTensor(X, modes)
    )
    np.testing.assert_array_equal(est.factors_[0], est.factors_[1])
    turned = [modes[0], Mode("to", people[::-1]), modes[2]]
    with pytest.raises(IncompatibleError, match="row 0 is person 0 in one and person 8"):
        SmartCPD(RANK, "poisson", same=("from", "to")).fit(LabelledTensor(X, turned))


def test_a_row_is_unobserved_where_no_mode_has_seen_it():
    X = network()[0].astype(float)
    X[3] = np.nan
    est = SmartCPD(RANK, "poisson", same=[(0, 1)], random_state=0).fit(X)
    assert (est.factors_[0][3] > 0).any()
    X[:, 3] = np.nan
    est = SmartCPD(RANK, "poisson", same=[(0, 1)], random_state=0).fit(X)
    assert (est.factors_[0][3] == 0).all()
    assert (est.factors_[1][3] == 0).all()


def test_intervals_know_that_a_factor_has_two_places():
    X, _ = network()
    est = SmartCPD(RANK, "poisson", same=[(0, 1)], random_state=0).fit(X)
    for method in ("hessian", "conditional"):
        found = est.model_.intervals(X, method=method)
        np.testing.assert_array_equal(found.lower[0], found.lower[1])
        moved = est.factors_[1] * (1 + 1e-9 * np.arange(N)[:, None])
        apart = CPModel([est.factors_[0], moved, est.factors_[2]], None, "poisson")
        apart = apart.intervals(X, method=method)
        wide, narrow = ((each.upper[0] - each.lower[0]).mean() for each in (apart, found))
        assert 1.2 < wide / narrow < 1.7  # about the square root of 2


@pytest.mark.parametrize("told", ["same", "fixed", "fixed_components"])
def test_new_slices_would_not_keep_to_what_was_told(told):
    X, truth = network()
    given = {
        "same": [(0, 1)],
        "fixed": {0: truth[0]},
        "fixed_components": [A[:, :1] for A in truth],
    }
    with pytest.raises(IncompatibleError, match=f"would not keep to {told}="):
        SmartCPD(RANK, "poisson", **{told: given[told]}).partial_fit(X, mode=2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"same": [(0, 2)]}, "mode 0 has 9, mode 2 has 7"),
        ({"same": [(0, 3)]}, "modes of X are 0 to 2"),
        ({"same": [(0, 0)]}, "at least two modes"),
        ({"same": [(0,)]}, "at least two modes"),
        ({"same": 0}, "written same="),
        ({"same": [0, [1]]}, "written same="),
        ({"same": "from"}, "written same="),
        ({"same": [(0, 1)], "constraint": {0: "simplex"}}, "single entries"),
        ({"same": [(0, 1)], "constraint": {0: "simplex", 1: "nonnegative"}}, "Give both the same"),
        ({"same": [(0, 1)], "fixed": {0: np.ones((9, 2)), 1: np.zeros((9, 2))}}, "serves both"),
        ({"same": [(0, 1)], "init": "smd"}, "one mode at a time"),
        ({"same": [(0, 1)], "step": "adagrad"}, "Solver 'smd'"),
    ],
)
def test_what_cannot_be_is_refused(options, match):
    with pytest.raises((InvalidParameterError, IncompatibleError), match=match):
        SmartCPD(RANK, "poisson", **options).fit(network()[0])
