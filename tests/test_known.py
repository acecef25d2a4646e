"""Factors, components and entries that are known before a fit."""

from __future__ import annotations

import numpy as np
import pytest
from pieces import DISTRIBUTIONS

from smartcpd import CPModel, SmartCPD, SparseTensor, constraints, datasets, losses, metrics
from smartcpd._strategies.informed import placed
from smartcpd.errors import IncompatibleError, InvalidParameterError

SHAPE, RANK = (9, 8, 7), 2
SERVED = ("quasi-newton", "lbfgs", "ggn")


def simulated(name, seed=0):
    """Planted data of a loss, and its factors."""
    rng = np.random.default_rng(seed)
    loss = losses.get(name)
    signed = loss.domain is not losses.Domain.NONNEGATIVE
    truth = [rng.gamma(2.0, 0.5, (size, RANK)) for size in SHAPE]
    if signed:
        truth = [A - 0.9 for A in truth]
    return loss.simulate(CPModel(truth).full(), rng), truth


@pytest.fixture(scope="module")
def counts():
    return datasets.count(SHAPE, RANK, a_max=2.0, random_state=0)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_known_entries_never_change_by_a_bit(name):
    X, truth = simulated(name)
    free = losses.get(name).domain is not losses.Domain.NONNEGATIVE
    low = np.full((SHAPE[1], RANK), -np.inf if free else 0.0)
    high = np.full_like(low, np.inf)
    low[2:5, 1] = high[2:5, 1] = truth[1][2:5, 1]
    est = SmartCPD(
        RANK,
        name,
        fixed={0: truth[0]},
        constraint={1: constraints.box(low, high)},
        effort=0.0,
        random_state=0,
    ).fit(X)
    np.testing.assert_array_equal(est.factors_[0], truth[0])
    np.testing.assert_array_equal(est.factors_[1][2:5, 1], truth[1][2:5, 1])
    assert np.isfinite(est.loss_)
    assert est.loss_ <= CPModel(truth, loss_function=name).loss(X) + 1e-9


@pytest.mark.parametrize(
    ("name", "store"),
    [(name, "dense") for name in DISTRIBUTIONS]
    + [(name, "sparse") for name in ("poisson", "gaussian")],
)
def test_one_free_factor_is_what_transform_finds(name, store):
    X, truth = simulated(name)
    if store == "sparse":
        X = SparseTensor(np.argwhere(X), X[X != 0], X.shape)
    fixed = {1: truth[1], 2: truth[2]}
    est = SmartCPD(RANK, name, fixed=fixed, init=truth, solver="ggn", tol=1e-9).fit(X)
    expected = CPModel(truth, loss_function=name).transform(X)
    np.testing.assert_allclose(est.factors_[0], expected, atol=1e-6 * np.abs(expected).max())


def test_known_components_come_first_and_the_others_are_found(counts):
    X, truth = counts
    known = [A[:, :1] for A in truth]
    est = SmartCPD(RANK, "poisson", fixed_components=known, random_state=0).fit(X)
    for A, B in zip(est.factors_, known, strict=True):
        np.testing.assert_array_equal(A[:, :1], B)
    plain = SmartCPD(RANK, "poisson", random_state=0).fit(X)
    assert metrics.factor_mse(est.factors_, truth) <= metrics.factor_mse(plain.factors_, truth)
    assert est.loss_ >= plain.loss_ - 1e-9


@pytest.mark.parametrize("seed", [930_003, 930_004])
def test_what_is_known_does_not_mislead(seed):
    X, truth = datasets.count((30, 25, 20), 4, a_max=1.5, random_state=seed)
    plain = SmartCPD(4, "poisson", random_state=seed).fit(X)
    known = [A[:, 2:3] for A in truth]
    est = SmartCPD(4, "poisson", fixed_components=known, random_state=seed).fit(X)
    assert metrics.factor_mse(est.factors_, truth) <= metrics.factor_mse(plain.factors_, truth)


def test_components_take_the_places_of_known_ones():
    rng = np.random.default_rng(0)
    truth = [rng.gamma(0.5, 1.0, (size, 3)) for size in SHAPE]
    low = [np.zeros(A.shape) for A in truth]
    high = [np.full(A.shape, np.inf) for A in truth]
    for n, A in enumerate(truth):
        low[n][:, 2] = high[n][:, 2] = A[:, 1]  # known in all modes
    low[0][:4, 0] = high[0][:4, 0] = truth[0][:4, 2]  # a few entries of a column
    rules = [constraints.box(a, b) for a, b in zip(low, high, strict=True)]
    # A fit finds components in any order, and at any scale of its modes.
    found = placed([3.0 * truth[0], truth[1] / 3.0, truth[2]], rules)
    np.testing.assert_allclose(found[0], truth[0][:, [2, 0, 1]] * [1.0, 3.0, 1.0])
    np.testing.assert_allclose(
        CPModel([A[:, :1] for A in found]).full(), CPModel([A[:, 2:] for A in truth]).full()
    )


def test_a_fit_with_known_parts_goes_on_from_its_checkpoint(counts, tmp_path):
    X, truth = counts
    options = {"fixed": {0: truth[0]}, "checkpoint": tmp_path / "kept", "random_state": 0}
    whole = SmartCPD(RANK, "poisson", fixed={0: truth[0]}, random_state=0).fit(X)

    def ends(report):
        return report.record.epoch >= 3

    SmartCPD(RANK, "poisson", callback=ends, checkpoint_every=0, **options).fit(X)
    again = SmartCPD(RANK, "poisson", resume=True, checkpoint_every=0, **options).fit(X)
    np.testing.assert_array_equal(again.factors_[1], whole.factors_[1])


def test_a_model_is_taken_for_its_components(counts):
    X, truth = counts
    model = CPModel([A[:, :1] for A in truth]).normalize()
    est = SmartCPD(RANK, "poisson", fixed_components=model, random_state=0).fit(X)
    expected = model.distribute().factors
    np.testing.assert_array_equal(est.factors_[1][:, :1], expected[1])


def test_known_zeros_stay_zeros(counts):
    X, _ = counts
    high = np.full((SHAPE[0], RANK), np.inf)
    high[:4, 0] = 0.0
    est = SmartCPD(RANK, "poisson", constraint={0: constraints.box(0, high)}, random_state=0).fit(X)
    assert (est.factors_[0][:4, 0] == 0).all()


@pytest.mark.parametrize("solver", SERVED)
def test_methods_that_serve_known_entries_agree(counts, solver):
    X, truth = counts
    fixed = {2: truth[2]}
    usual = SmartCPD(RANK, "poisson", fixed=fixed, random_state=0).fit(X)
    est = SmartCPD(
        RANK, "poisson", fixed=fixed, solver=solver, init=truth, tol=1e-4, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(est.factors_[2], truth[2])
    assert est.loss_ == pytest.approx(usual.loss_, abs=1e-5)


@pytest.mark.parametrize("solver", ["smd", "als", "mm", "dense", "gcp-adam"])
def test_other_solvers_say_that_they_do_not(counts, solver):
    X, truth = counts
    loss = "gaussian" if solver == "als" else "poisson"
    with pytest.raises(IncompatibleError, match="'quasi-newton', "):
        SmartCPD(RANK, loss, fixed={2: truth[2]}, solver=solver).fit(X)


def test_intervals_take_what_is_known_as_certain(counts):
    X, truth = counts
    est = SmartCPD(RANK, "poisson", fixed={0: truth[0]}, random_state=0).fit(X)
    rule = {0: constraints.box(truth[0], truth[0])}
    found = est.model_.intervals(X, constraint=rule)
    np.testing.assert_array_equal(found.lower[0], found.upper[0])
    unaware = est.model_.intervals(X)
    assert (found.upper[1] - found.lower[1]).sum() < (unaware.upper[1] - unaware.lower[1]).sum()
    with pytest.raises(IncompatibleError, match="are known"):
        est.model_.intervals(X, constraint=rule, method="bootstrap")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"fixed": {3: np.ones((9, 2))}}, "modes of X are 0 to 2"),
        ({"fixed": {0: np.ones((9, 3))}}, "9 rows and 2 columns"),
        ({"fixed": {0: np.full((9, 2), np.nan)}}, "must be finite"),
        ({"fixed": {0: -np.ones((9, 2))}}, "nonnegative model"),
        ({"fixed": np.ones((9, 2))}, "dict from modes"),
        ({"fixed_components": [np.ones((9, 3))] * 3}, "at most rank=2"),
        ({"constraint": {0: constraints.box(np.zeros((5, 2)), 1.0)}}, "9 rows and 2 columns"),
        ({"fixed_components": [np.ones((n, 1)) for n in SHAPE], "constraint": "simplex"}, "single"),
        ({"fixed": {0: np.ones((9, 2))}, "constraint": {1: "simplex"}}, "single entries"),
    ],
)
def test_what_cannot_be_is_refused(counts, options, match):
    with pytest.raises((InvalidParameterError, IncompatibleError), match=match):
        SmartCPD(RANK, "poisson", **options).fit(counts[0])


@pytest.mark.parametrize(
    ("lo", "hi", "match"),
    [
        (np.ones(2), np.zeros(2), "lo <= hi"),
        (np.ones((2, 2)), np.ones((3, 3)), "do not fit together"),
        (np.zeros((2, 2, 2)), 1.0, "rows and columns"),
        (np.full(2, np.inf), np.full(2, np.inf), "no finite number"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(lo, hi, match):
    with pytest.raises(InvalidParameterError, match=match):
        constraints.box(lo, hi)


def test_a_box_of_numbers_is_the_box():
    assert constraints.box(0, 1) == constraints.get("box(0, 1)")
