"""Exposure: expected values are exposure times model, and models are of rates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pieces import DISTRIBUTIONS

import smartcpd
from smartcpd import (
    CPModel,
    LabelledTensor,
    Mode,
    SmartCPD,
    SparseTensor,
    constraints,
    losses,
    metrics,
    rates,
)
from smartcpd._data.exposure import Exposure
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError
from smartcpd.quality import measure

SHAPE, RANK = (12, 10, 9), 2
MULTIPLIED = [name for name in DISTRIBUTIONS if losses.get(name).scales_with_exposure]
OF_CELLS = [name for name in MULTIPLIED if losses.get(name).exposure_power is not None]


def planted(name="poisson", seed=0, decades=3.0):
    """Data with an exposure of modes over some decades, that exposure, and the rates' factors."""
    rng = np.random.default_rng(seed)
    truth = [rng.gamma(2.0, 0.7, (size, RANK)) for size in SHAPE]
    half = decades / 2
    given = {n: 10 ** rng.uniform(0, half, SHAPE[n]) for n in (0, 2)}
    loss = losses.get(name)
    if loss.data is losses.Data.BINARY:
        truth[0] *= 0.01  # odds are rates while they are small
    E = Exposure.of(given, SHAPE).full(SHAPE)
    # Positive data of the usual dispersion may be so close to 0 that losses have no lowest value.
    noise = 1.0 if loss.allows_zeros or loss.dispersion is losses.Dispersion.FIXED else 0.01
    X = loss.simulate(E * np.asarray(CPModel(truth).full()), rng, dispersion=noise)
    return X, given, truth


def sparse(X):
    return SparseTensor(np.argwhere(X), X[X != 0], X.shape)


def product(given):
    return Exposure.of(given, SHAPE).full(SHAPE)


def every_cell(given, seed=0):
    """An exposure that is no product of vectors."""
    return product(given) * np.random.default_rng(seed).uniform(0.5, 2.0, SHAPE)


@pytest.mark.parametrize("name", MULTIPLIED)
def test_a_model_of_rates_expects_exposure_times_rate(name):
    X, given, truth = planted(name)
    est = SmartCPD(RANK, name, init=truth, random_state=0).fit(X, exposure=given)
    plain = SmartCPD(RANK, name, init=est.model_.with_exposure(), random_state=0).fit(X)
    # An exposure of modes changes the rows of factors, and nothing else.
    assert est.loss_ == pytest.approx(plain.loss_, rel=1e-3, abs=1e-3)
    model = est.model_
    assert model.loss(X) == pytest.approx(est.loss_, rel=1e-9)
    np.testing.assert_allclose(
        model.with_exposure().values(np.argwhere(X >= 0)[:50]),
        model.values(np.argwhere(X >= 0)[:50]) * product(given).reshape(-1)[:50],
        rtol=1e-9,
    )
    assert "rates" in est.status_.reason
    assert "rates" in repr(model)


@pytest.mark.parametrize("name", OF_CELLS)
def test_an_exposure_of_every_cell_is_a_weighted_fit_of_rates(name):
    X, given, truth = planted(name)
    E, loss = every_cell(given), losses.get(name)
    est = SmartCPD(RANK, name, init=truth, tol=1e-6, random_state=0).fit(X, exposure=E)
    weighted = SmartCPD(RANK, name, init=truth, tol=1e-6, random_state=0).fit(
        X / E, weights=E**loss.exposure_power
    )
    plain = est.model_.without_exposure()
    scale = np.abs(weighted.model_.full()).max()
    np.testing.assert_allclose(plain.full(), weighted.model_.full(), atol=5e-3 * scale)
    data = rates(X, E, name)
    assert plain.loss(data) == pytest.approx(weighted.model_.loss(data), rel=1e-6, abs=1e-6)
    cells = np.asarray(E * est.model_.without_exposure().full() / (loss.mean_scale or 1.0))
    expected = loss.values_at(X.reshape(-1).astype(float), cells.reshape(-1)).mean()
    assert est.loss_ == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert est.history_[-1].loss == pytest.approx(est.loss_, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("store", ["dense", "sparse"])
def test_poisson_with_exposure_is_the_weighted_fit_of_rates(store):
    X, given, truth = planted()
    E = product(given)
    options = {"init": truth, "tol": 1e-12, "random_state": 0}
    weighted = SmartCPD(RANK, "poisson", solver="ggn", **options).fit(X / E, weights=E)
    data = X if store == "dense" else sparse(X)
    est = SmartCPD(RANK, "poisson", solver="ggn", **options).fit(data, exposure=given)
    found, wanted = est.model_.without_exposure(), weighted.model_
    np.testing.assert_allclose(found.full(), wanted.full(), rtol=1e-5)
    of_found, of_wanted = (model.loss(X / E, weights=E) for model in (found, wanted))
    assert of_found == pytest.approx(of_wanted, rel=1e-8)
    np.testing.assert_allclose(metrics.kkt_residual(found, X / E, weights=E), 0.0, atol=1e-5)


@pytest.mark.parametrize("store", ["dense", "sparse", "sparse exposure", "unobserved"])
def test_rates_are_found_and_ignoring_exposure_is_visibly_wrong(store):
    X, given, truth = planted()
    data, exposure = X, given
    if store != "dense":
        data = sparse(X)
    if store == "sparse exposure":
        exposure = sparse(every_cell(given))
        rng = np.random.default_rng(1)
        counts = rng.poisson(exposure.to_dense() * np.asarray(CPModel(truth).full()))
        data = sparse(counts)
    if store == "unobserved":
        seen = np.flatnonzero(np.random.default_rng(0).random(X.size) < 0.7)
        data = SparseTensor(np.argwhere(X >= 0)[seen], X.reshape(-1)[seen], SHAPE, "unobserved")
    est = SmartCPD(RANK, "poisson", random_state=0).fit(data, exposure=exposure)
    ignoring = SmartCPD(RANK, "poisson", random_state=0).fit(data)
    error = metrics.factor_mse(est.factors_, truth)
    assert error < 0.003
    assert metrics.factor_mse(ignoring.factors_, truth) > 20 * error


@pytest.mark.parametrize("of_cells", [False, True])
def test_a_cell_without_exposure_was_not_observed(of_cells):
    X, given, _ = planted()
    given[0][3] = 0.0
    X[3] = 0
    exposure = every_cell(given) if of_cells else given
    est = SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=exposure)
    assert (est.factors_[0][3] == 0).all()
    assert "No cell was observed in row 3 of mode 0" in est.status_.reason
    holes = X.astype(float)
    holes[3] = np.nan
    again = SmartCPD(RANK, "poisson", random_state=0).fit(holes, exposure=exposure)
    np.testing.assert_allclose(again.model_.factors[1], est.model_.factors[1])
    X[3, 2, 1] = 5
    for data in (X, sparse(X)):
        with pytest.raises(InvalidDataError, match=r"X is 5 in cell \(3, 2, 1\)"):
            SmartCPD(RANK, "poisson").fit(data, exposure=exposure)


def test_known_parts_are_rates_and_stay_to_the_bit():
    X, given, truth = planted()
    known = [A[:, :1] for A in truth]
    for options in ({"fixed": {0: truth[0]}}, {"fixed_components": known}):
        est = SmartCPD(RANK, "poisson", random_state=0, **options).fit(X, exposure=given)
        width = RANK if "fixed" in options else 1
        np.testing.assert_array_equal(est.factors_[0][:, :width], truth[0][:, :width])
        assert metrics.factor_mse(est.factors_, truth) < 0.003
    high = np.full((SHAPE[0], RANK), 0.4)
    rule = {0: constraints.box(0.0, high)}
    est = SmartCPD(RANK, "poisson", constraint=rule, random_state=0).fit(X, exposure=given)
    assert est.factors_[0].max() <= 0.4


def test_constraints_and_shared_factors_are_about_rates():
    X, given, _ = planted()
    est = SmartCPD(RANK, "poisson", constraint={0: "simplex"}, random_state=0).fit(
        X, exposure=given
    )
    np.testing.assert_allclose(est.factors_[0].sum(axis=0), 1.0)
    rng = np.random.default_rng(0)
    A = rng.gamma(2.0, 0.7, (10, RANK))
    e = 10 ** rng.uniform(0, 2, 10)
    Y = rng.poisson(e[:, None] * (A @ A.T) * 5)
    est = SmartCPD(RANK, "poisson", same=[(0, 1)], random_state=0).fit(Y, exposure={0: e})
    np.testing.assert_array_equal(est.factors_[0], est.factors_[1])


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_an_exposure_does_not_matter(scale):
    X, given, _ = planted()
    for E in (given, every_cell(given)):
        times = E | {0: scale * E[0]} if isinstance(E, dict) else scale * E
        one, two = (
            SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=e) for e in (E, times)
        )
        a, b = (m.model_.without_exposure().full() for m in (one, two))
        np.testing.assert_allclose(scale * b, a, rtol=1e-2)
        assert one.loss_ == pytest.approx(two.loss_, rel=1e-4)


def test_everything_that_meets_data_knows_the_exposure(tmp_path):
    X, given, _ = planted()
    est = SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=given)
    model = est.model_
    assert 0.6 < measure(model, X).scatter < 1.4
    assert model.surprise(X).mean() > 0.4
    np.testing.assert_allclose(est.predict([[0, 1, 2]]), model.with_exposure().values([[0, 1, 2]]))
    assert metrics.kkt_residual(model, X) < 0.01
    assert model.diagnose(X) is not None
    assert est.score(X) > SmartCPD(1, "poisson", random_state=0).fit(X, exposure=given).score(X)
    rows = model.transform(X[:, :4], mode=1)
    np.testing.assert_allclose(rows, model.factors[1][:4], rtol=0.05, atol=0.02)
    model.save(tmp_path / "model")
    again = CPModel.load(tmp_path / "model")
    np.testing.assert_array_equal(again.full(), model.full())
    assert repr(again) == repr(model)
    model.report(tmp_path / "page.html", X)
    assert "rates per unit of exposure" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_models_that_were_saved_before_there_was_an_exposure_still_load(tmp_path):
    model = CPModel([np.ones((3, 1)), np.ones((2, 1))], None, "poisson")
    model.save(tmp_path / "old")
    header = tmp_path / "old.json"
    told = json.loads(header.read_text(encoding="utf-8"))
    del told["exposure"]
    header.write_text(json.dumps(told), encoding="utf-8")
    again = CPModel.load(tmp_path / "old")
    assert again.exposure is None
    np.testing.assert_array_equal(again.full(), model.full())


def test_intervals_are_about_rates():
    X, given, truth = planted()
    model = SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=given).model_
    found = model.intervals(X)
    covered = np.concatenate([c.reshape(-1) for c in found.contains(CPModel(truth))])
    assert covered.mean() > 0.75
    of_rates = model.without_exposure().intervals(rates(X, product(given), "poisson"))
    widths = [(each.upper[0] - each.lower[0]).mean() for each in (found, of_rates)]
    assert widths[0] == pytest.approx(widths[1], rel=0.2)  # the dispersion is estimated there
    for method in ("conditional", "bootstrap"):
        other = model.intervals(X, method=method, n_bootstrap=20, random_state=0)
        width = (other.upper[0] - other.lower[0]).mean()
        assert 0.5 < width / widths[0] < 1.5


def test_what_does_not_know_an_exposure_says_so():
    X, given, _ = planted()
    E = every_cell(given)
    est = SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=E)
    for verb in (est.model_.loss, est.model_.surprise, est.model_.intervals, est.model_.diagnose):
        with pytest.raises(IncompatibleError, match=r"smartcpd\.rates"):
            verb(X)
    with pytest.raises(IncompatibleError, match=r"smartcpd\.rates"):
        est.predict([[0, 0, 0]])
    data = rates(X, E, "poisson")
    assert est.model_.without_exposure().loss(data) < CPModel(
        [1.1 * A for A in est.factors_], est.weights_, "poisson"
    ).loss(data)
    of_modes = SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=given)
    with pytest.raises(IncompatibleError, match="exposure of new ones"):
        of_modes.model_.transform(X[:2], mode=0)
    with pytest.raises(IncompatibleError, match="exposure of new slices"):
        of_modes.partial_fit(X[:2])
    for verb in (smartcpd.select, smartcpd.replicate):
        with pytest.raises(IncompatibleError, match="many fits"):
            verb(X, [1] if verb is smartcpd.select else 1, "poisson", exposure=given)


@pytest.mark.parametrize(
    ("name", "exposure", "match"),
    [
        ("poisson", {3: np.ones(3)}, "modes of X are 0 to 2"),
        ("poisson", {}, "empty dict"),
        ("poisson", {0: np.ones(5)}, "a number for each"),
        ("poisson", {0: -np.ones(12)}, "not negative"),
        ("poisson", {0: np.zeros(12)}, "0 everywhere"),
        ("poisson", np.ones((5, 9)), "broadcasts to X"),
        ("poisson", np.full(SHAPE, np.nan), "finite"),
        ("poisson-log", {0: np.ones(12)}, "not in proportion"),
        ("negative-binomial(2)", np.random.default_rng(0).random(SHAPE), "no weights"),
    ],
)
def test_what_cannot_be_is_refused(name, exposure, match):
    errors = (InvalidParameterError, IncompatibleError, InvalidDataError)
    with pytest.raises(errors, match=match):
        SmartCPD(RANK, name).fit(planted()[0], exposure=exposure)


def test_modes_go_by_name_and_rows_by_label():
    X, given, _ = planted()
    modes = [Mode(name, range(size)) for name, size in zip("abc", SHAPE, strict=True)]
    est = SmartCPD(RANK, "poisson", random_state=0).fit(
        LabelledTensor(X, modes), exposure={"a": given[0], "c": given[2]}
    )
    plain = SmartCPD(RANK, "poisson", random_state=0).fit(X, exposure=given)
    np.testing.assert_array_equal(est.factors_[0], plain.factors_[0])
    part = est.model_.sel(a=3, c=[0, 4])
    np.testing.assert_allclose(part.full(), np.asarray(est.model_.full())[3][:, [0, 4]])


@pytest.fixture
def table(elsewhere):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    people = {f"city {n}": 10.0 ** rng.uniform(3, 6) for n in range(6)}
    rows = [
        (city, day, kind, rng.poisson(1e-3 * size * (day + 1)), size, rng.uniform(1, 100))
        for city, size in people.items()
        for day in range(5)
        for kind in ("a", "b")
    ]
    names = ["city", "day", "kind", "n", "population", "minutes"]
    pd.DataFrame(rows, columns=names).to_csv("events.csv", index=False)
    return ["events.csv", "--modes", "city,day,kind", "--value", "n", "--rank", "1", "--quiet"]


@pytest.mark.parametrize(("option", "column"), [("--per", "population"), ("--exposure", "minutes")])
def test_the_command_line_finds_rates_and_says_so(table, run, option, column):
    code, printed, said = run("fit", *table, option, column, "--out", "out", "--loss", "poisson")
    assert code == 0, said
    page = printed.strip()
    assert column in Path(page).read_text(encoding="utf-8")
    assert f"{option} {column}" in Path(page).read_text(encoding="utf-8")
    model = CPModel.load("out/model")
    if option == "--per":
        spread = model.factors[0][:, 0].max() / model.factors[0][:, 0].min()
        assert spread < 2  # all cities have the same rate
    told = json.loads(Path("out/model.json").read_text(encoding="utf-8"))
    assert told["exposure"]["is_product"] == (option == "--per")
    code, printed, said = run("show", "out")
    assert f"{column}." in printed


def test_a_column_that_is_not_of_a_mode_is_refused(table, run):
    code, _, said = run("fit", *table, "--per", "minutes", "--out", "out")
    assert code != 0
    assert "one number for each label of a mode" in said
    code, _, said = run("fit", *table, "--per", "minutes", "--exposure", "minutes", "--out", "out")
    assert code != 0
