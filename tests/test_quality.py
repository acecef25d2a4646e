"""Figures about a fit: against plain formulas, and the same for every storage of the same data."""

import json
import math

import numpy as np
import pytest
from pieces import LOSSES, simulated

from smartcpd import CPModel, LabelledTensor, Mode, SparseTensor, choose_loss, datasets, losses
from smartcpd._inference.dispersion import estimate
from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.losses import Domain
from smartcpd.quality import Quality, measure, reading
from smartcpd.quality.deviance import best_constant

SHAPE = (12, 10, 8)
COUNTS, TRUTH = datasets.count(SHAPE, 2, random_state=0)
POISSON = CPModel(TRUTH, loss_function="poisson")


def as_sparse(X, **more):
    return SparseTensor(np.argwhere(X), X[X != 0], X.shape, **more)


def drawn(name, shape=SHAPE, seed=0):
    """A model under a loss, and data that it made."""
    rng = np.random.default_rng(seed)
    loss = losses.get(name)
    factors = [rng.random((size, 2)) + 0.2 for size in shape]
    model = CPModel(factors, loss_function=loss)
    X = simulated(loss, model.values(tuple(np.indices(shape))), rng)
    return model, X


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_finite_figures(name):
    model, X = drawn(name)
    quality = measure(model, X)
    numbers = [quality.mean_loss, quality.constant_loss, quality.saturated_loss]
    numbers += [v for b in quality.calibration for v in (b.predicted, b.observed, b.error)]
    numbers += [v for c in quality.hot_cells for v in (c.observed, c.expected, c.residual)]
    assert np.isfinite(numbers).all()
    assert quality.mean_loss == pytest.approx(model.loss(X))
    assert quality.saturated_loss <= min(quality.mean_loss, quality.constant_loss) + 1e-9
    assert quality.deviance_explained is None or quality.deviance_explained <= 1
    assert sum(b.cells for b in quality.calibration) == X.size
    assert Quality.from_dict(json.loads(json.dumps(quality.to_dict()))) == quality


def test_the_saturated_value_of_a_loss_of_ones_own_is_searched():
    square = losses.custom(lambda x, m: (x - m * m) ** 2, lambda x, m: 4.0 * m * (m * m - x))
    x = np.array([0.25, 1.0, 9.0, 400.0])
    np.testing.assert_allclose(np.abs(square.best_model(x)), np.sqrt(x), rtol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_no_constant_is_better_than_the_best(name):
    _, X = drawn(name)
    loss = losses.get(name)
    x = X.ravel()[X.ravel() > 0] if not loss.allows_zeros else X.ravel()
    weights = np.ones(x.size)
    m = best_constant(loss, x, weights)
    best = loss.values_at(x, np.full(x.size, m)).sum()
    low = 1e-3 if loss.domain is Domain.NONNEGATIVE else -5.0
    for other in np.linspace(low, 8, 200):
        assert best <= loss.values_at(x, np.full(x.size, other)).sum() + 1e-7 * abs(best)


def test_counts_against_formulas():
    quality = measure(POISSON, COUNTS)
    mu = POISSON.full()
    x = COUNTS.astype(float)

    def deviance(m):
        logs = np.where(x > 0, x * np.log(np.maximum(x, 1) / m), 0.0)
        return 2 * (logs - x + m).sum()

    explained = 1 - deviance(mu) / deviance(np.full(SHAPE, x.mean()))
    assert quality.deviance_explained == pytest.approx(explained, rel=1e-6)
    degrees = x.size - 2 * (sum(SHAPE) - 2)
    assert quality.dispersion == pytest.approx(((x - mu) ** 2 / mu).sum() / degrees)
    assert quality.scatter == pytest.approx(((x - mu) ** 2).sum() / mu.sum())
    total = sum(b.cells * b.observed for b in quality.calibration)
    assert total == pytest.approx(x.sum())
    assert quality.nonzeros == np.count_nonzero(x)


def test_least_squares_explain_what_r_squared_says():
    model, X = drawn("gaussian")
    r_squared = 1 - ((X - model.full()) ** 2).sum() / ((X - X.mean()) ** 2).sum()
    quality = measure(model, X)
    assert quality.deviance_explained == pytest.approx(r_squared)
    assert quality.dispersion is None
    spread = np.sort(np.abs(X - model.full()).ravel())[::-1]
    ratio = [abs(c.residual) / r for c, r in zip(quality.hot_cells, spread, strict=False)]
    np.testing.assert_allclose(ratio, ratio[0])


def test_a_true_model_explains_about_what_it_can():
    quality = measure(POISSON, COUNTS)
    assert quality.deviance_explained == pytest.approx(quality.deviance_attainable, abs=0.06)
    assert 0.8 < quality.scatter < 1.2


@pytest.mark.parametrize("name", ["poisson", "bernoulli-odds", "gaussian", "poisson-log"])
def test_sparse_equals_dense(name):
    model, X = drawn(name)
    dense, sparse = measure(model, X), measure(model, as_sparse(X))
    for field in ("cells", "nonzeros", "dispersion", "scatter", "deviance_explained"):
        assert getattr(sparse, field) == pytest.approx(getattr(dense, field))
    assert [c.index for c in sparse.hot_cells] == [c.index for c in dense.hot_cells]
    assert [b.observed for b in sparse.calibration] == pytest.approx(
        [b.observed for b in dense.calibration]
    )


@pytest.mark.parametrize("name", ["poisson", "bernoulli-odds", "poisson-log"])
def test_a_sample_of_zeros_says_nearly_the_same(name, monkeypatch):
    shape = (40, 30, 20)
    rng = np.random.default_rng(1)
    factors = [rng.gamma(0.5, 0.6, (size, 2)) for size in shape]
    if name == "poisson-log":
        factors[0] = -factors[0]
    model = CPModel(factors, loss_function=name)
    X = np.asarray(
        losses.get(name).simulate(model.values(tuple(np.indices(shape))), rng), dtype=float
    )
    whole = measure(model, as_sparse(X))
    monkeypatch.setattr(reading, "READ_WHOLE", 1000)
    sampled = measure(model, as_sparse(X))
    assert sampled.sampled
    assert not whole.sampled
    # The levels do not depend on the sample, scatter hardly.
    assert sampled.deviance_explained == pytest.approx(whole.deviance_explained)
    assert sampled.nonzeros == whole.nonzeros
    if name == "poisson":
        assert sampled.dispersion == pytest.approx(whole.dispersion, rel=1e-6)
        assert sampled.scatter == pytest.approx(whole.scatter, rel=0.01)
    for a, b in zip(sampled.calibration, whole.calibration, strict=True):
        assert a.observed == pytest.approx(b.observed, rel=0.1, abs=0.01)
    assert sampled.hot_cells[0] == whole.hot_cells[0]


def test_a_huge_sparse_tensor_is_never_made_dense():
    rng = np.random.default_rng(0)
    shape = (2000, 1000, 500)
    factors = [rng.gamma(0.3, 1.0, (size, 3)) for size in shape]
    factors[0] *= 2e4 / np.prod([A.sum(axis=0) for A in factors], axis=0).sum()
    indices = [rng.integers(size, size=20_000) for size in shape]
    quality = measure(CPModel(factors, loss_function="poisson"), SparseTensor(tuple(indices)))
    assert quality.cells == math.prod(shape)
    assert quality.sampled_cells > 0
    total = sum(b.cells * b.predicted for b in quality.calibration)
    assert total == pytest.approx(2e4, rel=1e-3)


def test_unobserved_cells_do_not_count():
    X = as_sparse(COUNTS + 1, absent="unobserved")
    quality = measure(POISSON, X, absent="unobserved")
    assert quality.cells == COUNTS.size
    half = SparseTensor(tuple(i[::2] for i in X.indices), X.values[::2], SHAPE, "unobserved")
    assert measure(POISSON, half).cells == half.nnz


def test_a_planted_outlier_is_found_by_cell_and_by_row():
    X = COUNTS.copy()
    cell = tuple(int(i) for i in np.unravel_index(POISSON.full().argmax(), SHAPE))
    X[cell] += 200
    quality = measure(POISSON, X)
    assert quality.hot_cells[0].index == cell
    assert quality.hot_cells[0].residual > 10
    assert {(s.mode, s.index) for s in quality.hot_slices[:3]} == set(enumerate(cell))


def test_labels_are_no_obstacle_and_data_stays_as_it_is():
    before = COUNTS.copy()
    modes = tuple(Mode.numbered(f"m{n}", size) for n, size in enumerate(SHAPE))
    assert measure(POISSON, LabelledTensor(COUNTS, modes)) == measure(POISSON, COUNTS)
    np.testing.assert_array_equal(COUNTS, before)


def test_means_that_nobody_can_draw_are_no_obstacle():
    model = CPModel([np.full((3, 1), 4.0)] * 3, loss_function="poisson-log")
    assert measure(model, COUNTS[:3, :3, :3]).deviance_attainable is None


def test_a_large_dense_array_is_sampled(monkeypatch):
    whole = measure(POISSON, COUNTS)
    monkeypatch.setattr(reading, "READ_WHOLE", 1 << 9)
    monkeypatch.setattr(reading, "SLAB_CELLS", 1 << 8)
    sampled = measure(POISSON, COUNTS)
    assert sampled.sampled_cells == 1 << 9
    assert sampled.deviance_explained == pytest.approx(whole.deviance_explained, abs=0.15)


def test_constant_data_explains_nothing():
    model = CPModel([np.ones((3, 1))] * 3, loss_function="poisson")
    quality = measure(model, np.ones((3, 3, 3)))
    assert quality.deviance_explained is None


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidParameterError, match="no loss"):
        measure(CPModel(TRUTH), COUNTS)
    with pytest.raises(InvalidParameterError, match="same"):
        measure(POISSON, COUNTS[:5])
    with pytest.raises(InvalidDataError, match="Measure them again"):
        Quality.from_dict({"loss": "poisson"})


@pytest.mark.parametrize(
    ("name", "kind"),
    [("poisson", "counts"), ("bernoulli-odds", "probabilities"), ("gamma", "measurements")],
)
def test_kinds_of_data(name, kind):
    assert measure(*drawn(name)).data == kind


class TestMissingCells:
    """What nobody observed is in no figure."""

    def test_dense_and_sparse_agree_and_do_not_look_behind_the_mask(self):
        X, truth = datasets.count((12, 10, 8), 2, a_max=1.5, random_state=3)
        seen = np.random.default_rng(0).random(X.shape) < 0.7
        model = CPModel(truth, loss_function="poisson")
        holes = np.where(seen, X, np.nan)
        dense = measure(model, holes)
        sparse = SparseTensor(np.argwhere(X), X[X > 0], X.shape).with_missing(np.argwhere(~seen))
        assert dense.cells == int(seen.sum())
        expected = measure(model, sparse)
        for name in ("mean_loss", "deviance_explained", "dispersion", "scatter"):
            assert getattr(dense, name) == pytest.approx(getattr(expected, name), rel=1e-9)
        assert all(seen[tuple(cell.index)] for cell in dense.hot_cells)

    def test_choice_of_loss_and_dispersion(self):
        X = np.random.default_rng(0).gamma(4.0, 1.0, (10, 9, 8))
        holes = X.copy()
        holes[0, 0, 0] = np.nan
        assert choose_loss(holes).loss == choose_loss(X).loss
        model = CPModel([np.full((n, 1), 4.0 ** (1 / 3)) for n in X.shape], loss_function="gamma")
        assert estimate(model, holes) == pytest.approx(estimate(model, X), rel=0.05)
