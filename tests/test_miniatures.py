"""Miniatures of sparse tensors: what they keep of the whole, and what comes back from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartcpd import SparseTensor, datasets, losses
from smartcpd._fitting.fit import fit
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import Bursts
from smartcpd._problem.problem import Problem
from smartcpd._strategies import miniatures
from smartcpd._strategies.miniatures import Miniature

SHAPE = (60, 40, 8)
COUNTS, TRUTH = datasets.events(SHAPE, 2, n_events=6000, random_state=0)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr(miniatures, "LEAST_SAMPLE", 900)
    monkeypatch.setattr(miniatures, "EVENTS_A_PARAMETER", 1)


def condensed(X=COUNTS, rank=2, loss="poisson", seed=0):
    return Miniature.condensed(Problem.build(X, rank, loss), np.random.default_rng(seed))


def test_rows_are_put_together_with_their_neighbours_until_few_are_left():
    small = condensed()
    assert sum(small.problem.shape) <= 900 // (2 * miniatures.CONDENSED_EVENTS_A_PARAMETER) + 3
    for group, size in zip(small.groups, SHAPE, strict=True):
        assert group.size == size
        assert set(np.diff(group)) <= {0, 1}
    assert small.problem.storage.values.sum() == pytest.approx(small.share * COUNTS.values.sum())


def test_frequent_rows_stay_by_themselves():
    """A row with half of all events is no one's neighbour."""
    cells = np.stack(COUNTS.indices, axis=1)
    often = cells.copy()
    often[:, 0] = 30
    X = SparseTensor(np.concatenate([cells, often]), 1, SHAPE)
    group = condensed(X).groups[0]
    assert (group == group[30]).sum() == 1


@given(st.integers(0, 1000), st.integers(1, 4))
def test_what_is_enlarged_is_reduced_to_the_same(seed, rank):
    small = condensed(seed=seed)
    columns = np.random.default_rng(seed).random((sum(small.problem.shape), rank))
    mixture = Mixture.of(columns, small.problem.shape)
    large = small.enlarged(mixture)
    assert large.shape == SHAPE
    np.testing.assert_allclose(large.weights.sum(), mixture.weights.sum() / small.share)
    again = small.reduced(large)
    np.testing.assert_allclose(again.columns, mixture.columns, rtol=1e-12)
    np.testing.assert_allclose(again.weights, mixture.weights, rtol=1e-12)


def test_a_model_of_rows_that_are_put_together_is_the_sum_of_their_models():
    """Counts add up: the mean of a condensed cell is the sum of the means of its cells."""
    small = condensed()
    mixture = Mixture.of(np.concatenate(TRUTH), SHAPE)
    model = np.einsum("ir,jr,kr->ijk", *np.split(mixture.stacked(), [60, 100]))
    summed = np.zeros(small.problem.shape)
    np.add.at(summed, np.ix_(*small.groups), small.share * model)
    sizes = np.cumsum(small.problem.shape)[:-1]
    reduced = small.reduced(mixture).stacked()
    np.testing.assert_allclose(np.einsum("ir,jr,kr->ijk", *np.split(reduced, sizes)), summed)


def test_two_of_them_are_cut_at_different_places():
    one, two = condensed(seed=0), condensed(seed=1)
    assert any(a.tolist() != b.tolist() for a, b in zip(one.groups, two.groups, strict=True))


def test_yes_no_events_of_rows_that_are_put_together_are_counted():
    X = SparseTensor(COUNTS.indices, np.ones(COUNTS.nnz, bool), SHAPE)
    assert condensed(X, loss="bernoulli-odds").problem.storage.values.sum() == 900


@pytest.mark.parametrize("loss", ["alpha(0.5)"])
def test_losses_that_do_not_add_up_over_cells_keep_their_rows(loss):
    assert not condensed(loss=loss).groups


def test_data_with_few_nonzeros_or_with_weights_stays_whole(monkeypatch):
    weighted = SparseTensor(COUNTS.indices, COUNTS.values, SHAPE, weights=np.ones(COUNTS.nnz) / 2)
    assert condensed(weighted).is_whole
    monkeypatch.setattr(miniatures, "LEAST_SAMPLE", COUNTS.nnz)
    assert condensed().is_whole


def test_a_solution_is_seen_from_further_away():
    """Passes over few rows lead near the solution of all of them."""
    small = condensed()
    bursts = Bursts.over(small.problem.storage, losses.get("poisson"))
    start = Mixture.of(
        np.random.default_rng(0).random((sum(small.problem.shape), 2)) + 0.1, small.problem.shape
    )
    _, found = bursts.improved(start, 100, 0.1)
    whole = Bursts.over(COUNTS, losses.get("poisson"))
    lifted = whole.improved(small.enlarged(found), 100, 0.03)[0]
    best = whole.improved(Mixture.of(np.concatenate(TRUTH), SHAPE), 100, 0.03)[0]
    assert lifted == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_by_miniatures_ends_where_one_of_all_data_does(seed, monkeypatch):
    found = fit(COUNTS, 2, "poisson", random_state=seed)
    monkeypatch.setattr(miniatures, "LEAST_SAMPLE", COUNTS.nnz)
    best = fit(COUNTS, 2, "poisson", random_state=seed)
    assert found.loss <= best.loss + 1e-3 * abs(best.loss)
    assert found.status.converged
