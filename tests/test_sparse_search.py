"""The search for sparse models: what it finds under every kind of loss, and what it says."""

import numpy as np
import pytest

from smartcpd import SparseTensor, datasets, losses
from smartcpd._fitting.fit import fit
from smartcpd._methods.base import Settings
from smartcpd._methods.merging import merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import Bursts
from smartcpd._methods.mixture_descents import narrowed
from smartcpd._methods.mm import Passes
from smartcpd._objectives import objective_of, scaled_gradient
from smartcpd._problem.stopping import Stopping
from smartcpd._strategies import miniatures, population, sparse
from smartcpd._strategies.starts import marginal_factors

COUNTS, _ = datasets.events((20, 16, 12), 2, n_events=3000, random_state=0)
NOISE = np.random.default_rng(0)
MEASURED = SparseTensor(
    COUNTS.indices, COUNTS.values + 0.3 * NOISE.standard_normal(COUNTS.nnz), COUNTS.shape
)
EMPTY_OF_SENSE = SparseTensor(NOISE.integers(0, 12, (400, 3)), shape=(12, 12, 12))


@pytest.fixture
def no_dense_arrays(monkeypatch):
    monkeypatch.setattr(sparse, "AFFORDABLE", {True: 0, False: 0})


class TestOtherLosses:
    """Losses without multiplicative updates."""

    @pytest.mark.parametrize(
        ("loss", "X"),
        [("gaussian", MEASURED), ("negative-binomial(2)", COUNTS)],
    )
    @pytest.mark.usefixtures("no_dense_arrays")
    def test_sparse_descents_end_where_dense_ones_do(self, loss, X):
        found = fit(X, 2, loss, random_state=0)
        best = fit(X.to_dense(), 2, loss, solver="dense", random_state=0)
        assert found.status.converged
        assert found.solver == "sparse"
        # Noise alone moves these losses by more than 1e-2 of their size.
        assert found.loss <= best.loss + 1e-4 * abs(best.loss)

    def test_small_tensors_are_fitted_as_dense_arrays(self):
        found = fit(MEASURED, 2, "gaussian", random_state=0)
        best = fit(MEASURED.to_dense(), 2, "gaussian", random_state=0)
        assert found.loss == pytest.approx(best.loss, rel=1e-6)

    @pytest.mark.usefixtures("no_dense_arrays")
    def test_a_start_of_the_user_s_goes_on_by_quasi_newton_steps(self):
        start = fit(MEASURED, 2, "gaussian", max_epochs=3, random_state=0)
        found = fit(MEASURED, 2, "gaussian", init=start.model, random_state=0)
        assert found.solver == "quasi-newton"
        assert found.status.converged
        assert found.loss <= start.loss


class TestWhatIsSaid:
    def test_what_was_planted_is_found_independently(self):
        assert (
            "Found independently by 2 of" in fit(COUNTS, 2, "poisson", random_state=0).status.reason
        )

    @pytest.mark.slow
    def test_of_noise_nothing_is_confirmed_and_more_effort_breeds_for_longer(self):
        # Of fewer components the best may well be found twice.
        given = {"rank": 9, "loss": "poisson", "random_state": 0}
        little, much = (fit(EMPTY_OF_SENSE, effort=e, **given) for e in (0.1, 1.0))
        assert "Not confirmed" in little.status.reason
        assert much.loss <= little.loss
        assert much.history[-1].entries > little.history[-1].entries


def test_samples_keep_their_share_of_the_events(monkeypatch):
    monkeypatch.setattr(miniatures, "LEAST_SAMPLE", 300)
    monkeypatch.setattr(miniatures, "EVENTS_A_PARAMETER", 1)
    problem = sparse.Problem.build(COUNTS, 2, "poisson")
    small = miniatures.Miniature.sampled(problem, np.random.default_rng(0))
    assert small.problem.storage.nnz == 300
    assert small.share == pytest.approx(300 / COUNTS.nnz, rel=0.2)
    assert fit(COUNTS, 2, "poisson", random_state=0).status.converged


def test_a_mixture_is_narrowed_step_by_step():
    rng = np.random.default_rng(0)
    wide = Mixture.of(rng.random((48, 7)), (20, 16, 12))
    ranks = []

    def step(mixture, smoothing):
        ranks.append(mixture.rank)
        return mixture

    assert narrowed(wide, 3, step).rank == 3
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) > 1


def test_passes_of_a_mixture_go_down_to_where_its_expected_counts_stay():
    problem = sparse.Problem.build(COUNTS, 2, "poisson")
    rng = np.random.default_rng(0)
    bursts = Bursts.over(COUNTS, problem.loss)
    wide = Mixture.of(np.concatenate(marginal_factors(problem, 2, rng)), COUNTS.shape)
    before, mixture = bursts.improved(wide, 15, 1.0)
    after, mixture = bursts.improved(mixture, 300, 0.0)
    assert after < before
    passes = Passes.over(problem, 1)
    loss, again = passes.step(mixture, careful=True)
    assert loss * COUNTS.n_cells == pytest.approx(after, abs=1e-3)
    np.testing.assert_allclose(again.columns, mixture.columns, atol=1e-4)


def test_the_number_of_threads_does_not_change_what_a_search_finds():
    one, two = (fit(EMPTY_OF_SENSE, 4, "poisson", random_state=0, n_threads=n) for n in (1, 2))
    assert one.loss == two.loss


def test_twins_are_merged_first_and_nothing_is_lost():
    columns = np.random.default_rng(0).random((48, 4)) ** 4
    wide = Mixture.of(np.hstack([columns, columns[:, [2]]]), (20, 16, 12))
    merged = merged_by_information(wide, 4)
    assert merged.weights.sum() == pytest.approx(wide.weights.sum())
    alone = Mixture.of(columns, wide.shape)
    weights = alone.weights * [1, 1, 2, 1]
    np.testing.assert_allclose(np.sort(merged.weights), np.sort(weights))
    np.testing.assert_allclose(np.sort(merged.columns[0]), np.sort(alone.columns[0]))


@pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds", "alpha(0.5)"])
def test_scaled_gradients_are_gradients_times_factors(loss):
    events = SparseTensor(np.stack(COUNTS.indices, 1), np.ones(COUNTS.nnz), COUNTS.shape)
    objective = objective_of(events, losses.get(loss), 1)
    A = 0.3 * np.random.default_rng(0).random((48, 3))
    (value, gradient), (again, scaled) = objective.gradient(A), scaled_gradient(objective, A)
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(scaled, A * gradient, rtol=1e-9, atol=1e-15)


SEEN = NOISE.random(COUNTS.nnz) + 0.5
EVENTS = {
    "all cells alike": SparseTensor(COUNTS.indices, np.ones(COUNTS.nnz), COUNTS.shape),
    "missing cells": SparseTensor(
        tuple(column[COUNTS.nnz // 4 :] for column in COUNTS.indices),
        np.ones(COUNTS.nnz - COUNTS.nnz // 4),
        COUNTS.shape,
        missing=tuple(column[: COUNTS.nnz // 4] for column in COUNTS.indices),
    ),
    "weights": SparseTensor(COUNTS.indices, np.ones(COUNTS.nnz), COUNTS.shape, weights=SEEN),
}


@pytest.mark.parametrize("name", ["poisson", "bernoulli-odds", "alpha(0.5)"])
@pytest.mark.parametrize("what", EVENTS)
class TestBursts:
    """Steps of a population are those of the loss, whatever cells are missing or weigh."""

    def test_the_loss_is_that_of_all_cells(self, what, name):
        storage, loss = EVENTS[what], losses.get(name)
        mixture = Mixture.of(0.5 * np.random.default_rng(0).random((48, 3)), storage.shape)
        total, _ = Bursts.over(storage, loss, threshold=1e-6).improved(mixture, 1, 0.0)
        exact = objective_of(storage, loss, 1).estimate(mixture.balanced()).loss
        assert total == pytest.approx(storage.n_observed * exact, rel=1e-5)

    def test_passes_and_quasi_newton_steps_end_where_nothing_is_left(self, what, name):
        storage, loss = EVENTS[what], losses.get(name)
        bursts = Bursts.over(storage, loss, threshold=1e-3)
        start = Mixture.of(0.5 * np.random.default_rng(0).random((48, 2)), storage.shape)
        _, near = bursts.improved(start, 100, 0.0)
        found = bursts.descended(near, 300, 1e-6)
        again, _ = bursts.improved(found.mixture, 200, 0.0)
        assert found.settled
        # Passes hold entries a little above 0.
        assert found.loss == pytest.approx(again, rel=2e-4)
        objective = objective_of(storage, loss, 1)
        _, scaled = scaled_gradient(objective, found.mixture.balanced())
        assert np.abs(scaled).max() * storage.n_observed < 1e-2 * found.mixture.weights.max()


def test_missing_cells_are_not_taken_for_empty_while_starts_are_bred():
    """Half of a block was never looked at; a model that took it for empty would be half as high
    there."""
    rng = np.random.default_rng(0)
    block = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1).reshape(-1, 3)
    unseen = rng.random(len(block)) < 0.5
    X = SparseTensor(block[~unseen], np.full((~unseen).sum(), 5.0), (16, 16, 16))
    X = X.with_missing(block[unseen])
    problem = sparse.Problem.build(X, 1, "poisson")
    tracker = sparse.Tracker(problem, settings(), lambda epoch: None, rng)
    best = population.Population(problem, tracker, rng, 1).bred()[0].mixture
    assert best.weights.sum() == pytest.approx(5.0 * len(block), rel=0.02)


def settings():
    stopping = Stopping(0.02, 0.0, 1000, None)
    return Settings(stopping, 20, 1, False, "float64", 1)


def test_large_odds_are_reached():
    """EM creeps where odds grow; the loss of blocks that are certain must not stay behind."""
    block = np.stack(np.meshgrid(*(np.arange(6),) * 3, indexing="ij"), -1).reshape(-1, 3)
    X = SparseTensor(np.concatenate([block, block + 8]), np.ones(2 * len(block)), (16, 16, 16))
    found = fit(X, 2, "bernoulli-odds", random_state=0)
    assert found.status.converged
    assert found.loss < 1e-4


def test_odds_that_grow_without_bound_do_not_hold_up_the_steps():
    """Blocks that are certain have no finite odds, while others are settled by then."""
    rng = np.random.default_rng(0)
    block = np.stack(np.meshgrid(*(np.arange(6),) * 3, indexing="ij"), -1).reshape(-1, 3)
    others = 8 + np.argwhere(rng.random((10, 10, 10)) < 0.3)
    cells = np.concatenate([block, others])
    X = SparseTensor(cells, np.ones(len(cells)), (18, 18, 18))
    start = Mixture.of(0.3 + rng.random((54, 2)), X.shape)
    bursts = Bursts.over(X, losses.get("bernoulli-odds"), threshold=1e-3)
    found = bursts.descended(start, 150)
    further = bursts.descended(found.mixture, 1000)
    assert found.loss - further.loss < 1e-4 * further.loss


def test_a_child_has_what_its_parents_share_and_other_components_of_both():
    rng = np.random.default_rng(0)
    columns = rng.random((48, 6)) ** 8
    shape = (20, 16, 12)
    one, two = Mixture.of(columns[:, :4], shape), Mixture.of(columns[:, 2:], shape)
    child = population.mixed(one, two, rng)
    everyone = Mixture.of(columns, shape)
    _, theirs, cosines = population.paired(child, everyone)
    np.testing.assert_allclose(cosines, 1.0)
    assert child.rank == 4
    assert {2, 3} <= set(theirs)
    assert population.mixed(one, one, rng) is None


@pytest.mark.parametrize("seed", range(3))
def test_starts_do_not_agree_on_a_poor_merge(seed):
    """Two components and noise in other rows: of three wide ones two are to be merged, and starts
    that are not smoothed all merge the wrong ones."""
    events = datasets.events((50, 20, 10), 2, 3000, random_state=0).data.to_dense()
    noise = np.random.default_rng(3).poisson(0.45, (30, 20, 10))
    whole = np.concatenate([events, noise]).astype(float)
    X = SparseTensor(np.argwhere(whole), whole[whole > 0], whole.shape)
    found, best = (fit(data, 2, "poisson", random_state=seed) for data in (X, whole))
    assert found.solver == "sparse"
    assert found.loss <= best.loss + 1e-4


@pytest.mark.slow
def test_steps_for_tensors_of_different_orders_are_not_taken_for_each_other():
    """Machine code from disk is linked by name, so one process must have all of them."""
    rng = np.random.default_rng(0)
    for order in (3, 2, 4):
        shape = (9, 8, 7, 6)[:order]
        cells = np.unique(rng.integers(0, shape, (60, order)), axis=0)
        X = SparseTensor(cells, np.ones(len(cells)), shape)
        mixture = Mixture.of(0.5 * rng.random((sum(shape), 3)), shape)
        for name in ("poisson", "bernoulli-odds"):
            bursts = Bursts.over(X, losses.get(name), threshold=1e-6)
            exact = objective_of(X, losses.get(name), 1).estimate(mixture.balanced()).loss
            total, _ = bursts.improved(mixture, 1, 0.0)
            assert total == pytest.approx(X.n_observed * exact, rel=1e-5)
            assert bursts.descended(mixture, 3).loss < total
