"""The first slices of a mode that grows are kept while they are few."""

import numpy as np
import pytest

from smartcpd import SmartCPD, SparseTensor, datasets
from smartcpd._data.opening import as_storage
from smartcpd._inference.streaming.early import EarlySlices

RANK = 3
X, _ = datasets.count((60, 20, 15), RANK, a_max=1.0, random_state=0)


def estimator(**parameters):
    return SmartCPD(**{"rank": RANK, "loss": "poisson", "random_state": 0} | parameters)


def arrived(slabs, est=None, **parameters):
    est = est or estimator()
    for slab in slabs:
        est.partial_fit(slab, **parameters)
    return est


def joined(*pieces, mode=0):
    storages = [as_storage(piece) for piece in pieces]
    early = EarlySlices.of(storages[0], mode, rank=RANK)
    for storage in storages[1:]:
        early = early.plus(storage)
    return early.joined().tensor


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_thin_slabs_end_near_the_fit_of_all_data(seed):
    data, _ = datasets.count((60, 40, 30), 5, random_state=seed)
    est = arrived(np.split(data, 20), SmartCPD(5, "poisson", random_state=seed))
    batch = SmartCPD(5, "poisson", random_state=seed).fit(data)
    assert est.model_.loss(data) - batch.loss_ < 0.01 * abs(batch.loss_)


def test_slices_may_come_one_by_one():
    est, batch = arrived(np.split(X, 60), estimator(max_epochs=50)), estimator().fit(X)
    assert est.model_.loss(X) - batch.loss_ < 0.01 * abs(batch.loss_)


def test_they_are_kept_until_they_are_enough():
    est = arrived([X[:3]])
    assert est.past_.early.n_entries == np.count_nonzero(X[:3])
    est.partial_fit(X[3:7])
    assert "All 7 slices of mode 0 were fitted anew" in est.status_.reason
    assert est.past_.early.n_fitted == np.count_nonzero(X[:7])
    est.partial_fit(X[7:])
    assert est.past_.early is None


def test_what_was_given_may_be_overwritten():
    buffer, est = X[:3].copy(), estimator()
    est.partial_fit(buffer)
    buffer[:] = 0
    same = arrived([X[:3], X[3:7]])
    assert "anew" in same.status_.reason
    est.partial_fit(X[3:7])
    for A, B in zip(est.factors_, same.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


def test_components_keep_their_order(monkeypatch):
    monkeypatch.setattr("smartcpd._inference.streaming.early.ENOUGH", 100)
    est = arrived([X[:20]])
    before = est.model_.normalize()
    est.partial_fit(X[20:40])
    assert "anew" in est.status_.reason
    pairs = zip(before.factors[1:], est.model_.normalize().factors[1:], strict=True)
    cosines = np.prod([A.T @ B for A, B in pairs], axis=0)
    assert (cosines.argmax(axis=0) == np.arange(RANK)).all()


def test_forgetting_keeps_none():
    est = arrived([X[:3], X[3:7]], forgetting=0.9)
    assert est.past_.early is None


def test_a_fit_from_a_start_of_the_users_is_not_repeated():
    start = [np.random.default_rng(0).random((n, RANK)) for n in (3, 20, 15)]
    est = arrived([X[:3], X[3:7]], estimator(init=start))
    assert "anew" not in est.status_.reason


def test_sparse_and_dense_slices_are_joined_alike():
    dense = [X[:10], X[10:25]]
    sparse = [SparseTensor(np.argwhere(S), S[S > 0], S.shape) for S in dense]
    for pieces in (dense, sparse, (dense[0], sparse[1]), (sparse[0], dense[1])):
        found = joined(*pieces)
        assert not found.weighted
        cells = found.to_dense() if isinstance(found, SparseTensor) else found.array
        np.testing.assert_array_equal(cells, X[:25])


def test_missing_cells_and_weights_are_joined():
    cells = np.array([[0, 1, 2], [3, 0, 0]])
    sparse = SparseTensor(np.argwhere(X[:10]), X[:10][X[:10] > 0], X[:10].shape, missing=cells)
    both = joined(sparse, sparse)
    assert both.n_missing == 4
    assert both.shape == (20, 20, 15)
    mixed = joined(sparse, X[10:20])
    weights = mixed.weights
    assert mixed.shape == (20, 20, 15)
    assert (weights == 0).sum() == 2
    assert weights[0, 1, 2] == weights[3, 0, 0] == 0


def test_slices_of_another_mode():
    turned = np.moveaxis(X, 0, 2)
    found = joined(turned[..., :10], turned[..., 10:30], mode=2)
    np.testing.assert_array_equal(found.array, turned[..., :30])
