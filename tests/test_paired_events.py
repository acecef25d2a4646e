"""Events in pairs count what single events count, and searches by them lose nothing."""

import numpy as np
import pytest

from smartcpd import SparseTensor, losses
from smartcpd._common.stacked import offsets
from smartcpd._data import event_sums
from smartcpd._data.storage import paired
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import Bursts, quickest_precision
from smartcpd._objectives import objective_of
from smartcpd._strategies.population import TWINS, mixed
from smartcpd._strategies.population import paired as paired_components

RNG = np.random.default_rng(0)


def some_events(shape, count=600):
    cells = np.unique(RNG.integers(0, shape, (count, len(shape))), axis=0)
    return SparseTensor(cells, RNG.poisson(2.0, len(cells)) + 1.0, shape)


SHAPES = [(40, 30), (12, 9, 30), (7, 6, 5, 8), (4, 3, 5, 4, 6)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_event_stands_in_one_pair(shape):
    X = some_events(shape)
    pairs = X.events.paired
    at = np.repeat(np.arange(len(pairs.outer)), np.diff(pairs.starts))
    rows = np.hstack([pairs.outer[at], pairs.inner[pairs.partners]])
    expected = np.stack(X.indices, axis=1) + offsets(shape)[:-1]
    seen = {tuple(np.sort(row)): x for row, x in zip(rows, pairs.values, strict=True)}
    assert seen == {tuple(row): x for row, x in zip(expected, X.values, strict=True)}


def test_events_of_tensors_with_too_many_cells_for_one_number_are_paired(monkeypatch):
    X = some_events((12, 9, 30))
    usual = X.events.paired
    monkeypatch.setattr(paired.math, "prod", lambda sizes: 2**63 if len(sizes) == 3 else 27)
    keys = paired._numbered(X.events, (0, 1))
    assert len(np.unique(keys)) == len(np.unique(np.stack(X.indices[:2], axis=1), axis=0))
    assert len(usual.values) == len(keys)


@pytest.mark.parametrize("rank", [3, 10, 20])
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_pairs_count_what_single_events_count(shape, rank, monkeypatch):
    X, loss = some_events(shape), losses.get("poisson")
    A = RNG.random((sum(shape), rank))
    in_pairs = event_sums.scaled_event_sum(X.events, loss, "surplus", A, 1)
    monkeypatch.setattr(event_sums, "MOST_PAIRED", 0)
    one_by_one = event_sums.scaled_event_sum(X.events, loss, "surplus", A, 1)
    assert in_pairs.total == pytest.approx(one_by_one.total, rel=1e-12)
    np.testing.assert_allclose(in_pairs.gradient, one_by_one.gradient, rtol=1e-10)


@pytest.mark.parametrize("rank", [3, 12, 20, 40])
def test_passes_in_float32_lead_to_losses_that_hold_in_float64(rank):
    X, loss = some_events((12, 9, 30)), losses.get("poisson")
    bursts = Bursts.over(X, loss)
    assert bursts.dtype == "float32"
    start = Mixture.of(RNG.random((51, rank)), X.shape)
    before, _ = bursts.improved(start, 1, 0.0)
    # The loss that is returned is that of the mixture: one more pass begins there.
    after, mixture = bursts.improved(start, 30, 0.3)
    exact = objective_of(X, loss, 1).estimate(mixture.balanced()).loss
    assert after < before
    assert after == pytest.approx(exact * X.n_cells, rel=1e-5)


def test_precision_is_kept_where_products_of_small_entries_need_it():
    assert quickest_precision((1000, 1000, 1000)) == "float32"
    assert quickest_precision((10,) * 8) == "float64"


def test_entries_that_are_0_can_grow_again():
    X, loss = some_events((12, 9, 30)), losses.get("poisson")
    start = Mixture.of(RNG.random((51, 3)), X.shape)
    start.columns[:12] = 0.0
    start.columns[0] = 1.0
    _, mixture = Bursts.over(X, loss).improved(start, 40, 0.1)
    sums = np.bincount(X.indices[0], weights=X.values, minlength=12)
    np.testing.assert_allclose(mixture.columns[:12] @ mixture.weights, sums, rtol=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_children_have_components_of_their_parents_and_all_that_both_share(seed):
    rng = np.random.default_rng(seed)
    columns = rng.random((51, 9)) ** 6
    one = Mixture.of(columns[:, :6], (12, 9, 30))
    two = Mixture.of(columns[:, [8, 1, 0, 6, 7, 2]], (12, 9, 30))
    child = mixed(one, two, rng)
    assert child is not None
    assert child.rank == 6
    both = Mixture.of(columns, one.shape)
    assert all(
        np.abs(both.columns.T - column).sum(axis=1).min() < 1e-12 for column in child.columns.T
    )
    _, _, cosines = paired_components(child, Mixture.of(columns[:, :3], one.shape))
    assert (cosines >= TWINS).all()


def test_twins_have_no_children():
    one = Mixture.of(RNG.random((51, 4)), (12, 9, 30))
    assert mixed(one, Mixture(one.columns[:, ::-1], one.weights[::-1], one.shape), RNG) is None
