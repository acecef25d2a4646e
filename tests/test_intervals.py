"""Intervals for loadings: the information they come from, and what they say."""

import numpy as np
import pytest

from smartcpd import CPModel, LabelledTensor, Mode, SmartCPD, SparseTensor, losses
from smartcpd._common.stacked import stack, unstack
from smartcpd._inference.intervals import estimate
from smartcpd._inference.intervals.information import gauge, information
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

SHAPE, RANK = (14, 11, 9), 2


def planted(seed=0, shape=SHAPE, size=3.0):
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(1.0, 1.0, (n, RANK)) for n in shape]
    factors[0] *= size
    return CPModel(factors, loss_function="poisson"), rng


@pytest.fixture(scope="module")
def counts():
    truth, rng = planted()
    X = rng.poisson(truth.full())
    model = SmartCPD(RANK, "poisson", init=truth, random_state=0).fit(X).model_
    return X, model, truth


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (3, 2, 4, 2)])
def test_information_is_that_of_differences(shape):
    rng = np.random.default_rng(0)
    factors = [rng.uniform(0.5, 1.5, (n, RANK)) for n in shape]
    W = rng.uniform(0.1, 2.0, shape)
    A, h = stack(factors), 1e-6
    columns = []
    for i in range(A.size):
        ends = []
        for sign in (1, -1):
            moved = A.copy()
            moved.reshape(-1)[i] += sign * h
            ends.append(CPModel(unstack(moved, shape)).full().reshape(-1))
        columns.append((ends[0] - ends[1]) / (2 * h))
    J = np.stack(columns, axis=1)
    M = information(factors, W)
    np.testing.assert_allclose(M, J.T @ (W.reshape(-1, 1) * J), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(M @ gauge(factors), 0, atol=1e-9 * np.abs(M).max())


def test_they_are_about_the_normalised_model(counts):
    X, model, _ = counts
    found = model.intervals(X)
    assert (found.method, found.level, found.dispersion) == ("hessian", 0.9, 1.0)
    for A, low, high in zip(found.model.factors, found.lower, found.upper, strict=True):
        np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1)
        assert ((low <= A) & (high >= A)).all()
        assert low.min() >= 0
    weights = found.model.weights
    assert ((found.weights_lower < weights) & (weights < found.weights_upper)).all()
    scaled = model.absorb(2).intervals(X)
    for a, b in zip(found.upper, scaled.upper, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert "90%" in repr(found)


def test_they_contain_about_the_share_they_claim():
    """Benchmarks measure it on many data sets; here is what would be far off."""
    inside = []
    for seed in range(8):
        truth, rng = planted(seed)
        X = rng.poisson(truth.full())
        model = SmartCPD(RANK, "poisson", init=truth, random_state=0).fit(X).model_
        inside += [part.ravel() for part in model.intervals(X).contains(truth)]
    assert 0.84 < np.concatenate(inside).mean() < 0.96


def test_more_certain_means_wider(counts):
    X, model, _ = counts
    narrow, wide = model.intervals(X, 0.5), model.intervals(X, 0.99)
    for a, b in zip(narrow.upper, wide.upper, strict=True):
        assert (a < b).all()
    rest = model.intervals(X, method="conditional")
    joint = model.intervals(X)
    widths = [
        np.concatenate([(u - v).ravel() for u, v in zip(i.upper, i.lower, strict=True)])
        for i in (rest, joint)
    ]
    assert np.median(widths[0] / widths[1]) < 1.05


def test_a_bootstrap_agrees(counts):
    X, model, _ = counts
    joint = model.intervals(X)
    drawn = model.intervals(X, method="bootstrap", n_bootstrap=25, random_state=0)
    again = model.intervals(X, method="bootstrap", n_bootstrap=25, random_state=0)
    np.testing.assert_array_equal(drawn.lower[0], again.lower[0])
    ratio = [
        (b - a) / (d - c)
        for a, b, c, d in zip(drawn.lower, drawn.upper, joint.lower, joint.upper, strict=True)
    ]
    assert 0.7 < np.median(np.concatenate([r.ravel() for r in ratio])) < 1.3


def test_sparse_data_as_dense_data(counts):
    X, model, _ = counts
    mask = np.random.default_rng(0).random(SHAPE) > 0.2
    dense = model.intervals(np.where(mask, X, 99), mask=mask)
    some = mask & (X > 0)
    thin = SparseTensor(np.argwhere(some), X[some], SHAPE, missing=np.argwhere(~mask))
    seen = SparseTensor(np.argwhere(mask), X[mask], SHAPE, "unobserved")
    for data in (thin, seen):
        for a, b in zip(dense.upper, model.intervals(data).upper, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    whole = model.intervals(X)
    assert np.mean(dense.upper[0] - dense.lower[0]) > np.mean(whole.upper[0] - whole.lower[0])


def test_loadings_at_a_bound_have_one_sided_intervals():
    truth, rng = planted()
    factors = [A.copy() for A in truth.factors]
    factors[1][:4, 0] = 0
    X = rng.poisson(CPModel(factors).full())
    model = SmartCPD(RANK, "poisson", init=truth, random_state=0).fit(X).model_
    found = model.intervals(X)
    held = found.at_bound[1]
    assert held.any()
    assert (found.lower[1][held] == 0).all()
    assert (found.upper[1][held] > 0).all()
    assert (found.upper[1][held] < 0.2).all()


def test_rows_of_which_nothing_is_known_have_no_ends(counts):
    X, model, _ = counts
    data = X.astype(float)
    data[3] = np.nan
    factors = [model.factors[0].copy(), *model.factors[1:]]
    factors[0][3] = 0
    found = CPModel(factors, loss_function="poisson").intervals(data)
    assert (found.lower[0][3] == 0).all()
    assert np.isinf(found.upper[0][3]).all()
    assert np.isfinite(found.upper[1]).all()


def test_the_noise_is_estimated_where_it_is_open():
    truth, rng = planted(size=1.0)
    X = truth.full() + 0.5 * rng.standard_normal(SHAPE)
    model = SmartCPD(RANK, "gaussian", init=truth, random_state=0).fit(X).model_
    found = model.intervals(X)
    assert found.dispersion == pytest.approx(0.25, rel=0.15)
    half = model.intervals(X, dispersion=found.dispersion / 4)
    widths = [(i.upper[2] - i.lower[2]) for i in (found, half)]
    np.testing.assert_allclose(widths[0], 2 * widths[1], rtol=1e-9)
    robust = CPModel(model.factors, loss_function="huber(0.6)").intervals(X)
    assert np.median((robust.upper[0] - robust.lower[0]) / (found.upper[0] - found.lower[0])) < 1.3
    own = losses.custom(lambda x, m: (x - m) ** 2, lambda x, m: 2.0 * (m - x), name="squares")
    same = CPModel(model.factors, loss_function=own).intervals(X)
    np.testing.assert_allclose(same.upper[2] - same.lower[2], widths[0], rtol=0.05)


def test_as_a_table(counts):
    X, model, _ = counts
    modes = tuple(
        Mode(n, [f"{n}{i}" for i in range(size)]) for n, size in zip("abc", SHAPE, strict=True)
    )
    named = CPModel(model.factors, model.weights, "poisson", modes)
    found = named.intervals(LabelledTensor(X, modes))
    frame = found.to_frame()
    assert list(frame) == ["mode", "label", "component", "value", "lower", "upper", "at_bound"]
    assert len(frame) == RANK * sum(SHAPE)
    row = frame[(frame["mode"] == "b") & (frame["label"] == "b3") & (frame["component"] == 2)]
    assert row["upper"].item() == found.upper[1][3, 1]


def test_what_makes_no_sense_is_refused(counts, monkeypatch):
    X, model, _ = counts
    for level in (0, 1, 90, "high"):
        with pytest.raises(InvalidParameterError, match="level must be between 0 and 1"):
            model.intervals(X, level)
    with pytest.raises(InvalidParameterError, match="method must be one of"):
        model.intervals(X, method="exact")
    with pytest.raises(InvalidParameterError, match="no loss"):
        CPModel(model.factors).intervals(X)
    with pytest.raises(InvalidParameterError, match="must be the same"):
        model.intervals(X[:3])
    with pytest.raises(IncompatibleError, match="Use method='bootstrap'"):
        model.intervals(X, constraint={0: "sparsity(0.1)"})
    twice = CPModel([np.c_[A[:, :1], A[:, :1]] for A in model.factors], loss_function="poisson")
    with pytest.raises(InvalidDataError, match="two components are alike"):
        twice.intervals(X)
    monkeypatch.setattr(estimate, "MAX_PARAMETERS", 10)
    assert model.intervals(X).method == "conditional"
    with pytest.raises(InvalidParameterError, match="for at most 10 loadings"):
        model.intervals(X, method="hessian")


def test_losses_of_cells_are_what_the_information_is_about(counts):
    """The likelihood falls along a loading about as the information says."""
    X, model, _ = counts
    factors = [A.copy() for A in model.distribute().factors]
    loss = model.loss_function
    W = loss.expected_bends(CPModel(factors).full())
    bend = information(factors, W)[0, 0]
    values = []
    h = 0.05 * factors[0][0, 0]
    for step in (-h, 0.0, h):
        moved = [A.copy() for A in factors]
        moved[0][0, 0] += step
        values.append(loss.values_at(X, CPModel(moved).full()).sum())
    assert (values[0] - 2 * values[1] + values[2]) / h**2 == pytest.approx(bend, rel=0.3)
