"""Held-out cells: which they are, what is left, and what they stand for."""

import numpy as np
import pytest

from smartcpd import SparseTensor
from smartcpd._data.opening import as_storage
from smartcpd._data.storage.observed import weights_at
from smartcpd._inference.selection.folds import make_folds
from smartcpd._inference.selection.zeros import ZeroDraw
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError


def folds(X, cv=4, holdout="cells", mode=0, seed=0, **more):
    return make_folds(as_storage(X, **more), cv, holdout, mode, np.random.default_rng(seed))


def cells_of(fold, shape):
    return np.ravel_multi_index(fold.places, shape)


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(0).poisson(1.0, (7, 6, 5)).astype(float)


@pytest.fixture
def sparse():
    rng = np.random.default_rng(1)
    rates = np.outer(rng.gamma(0.3, 1.0, 40), rng.gamma(0.3, 1.0, 30))[:, :, None] * np.ones(20)
    X = rng.poisson(0.3 * rates)
    return SparseTensor(np.argwhere(X), X[X > 0], X.shape)


class TestDense:
    def test_every_cell_is_held_out_once(self, X):
        found = np.concatenate([cells_of(f, X.shape) for f in folds(X)])
        assert np.array_equal(np.sort(found), np.arange(X.size))

    def test_held_out_cells_are_missing_in_training(self, X):
        for fold in folds(X):
            assert not weights_at(fold.training, fold.places).any()
            assert np.array_equal(fold.x, X[tuple(fold.places)])
            assert fold.training.n_missing == fold.n_cells

    def test_missing_cells_are_never_held_out(self, X):
        mask = np.random.default_rng(1).random(X.shape) < 0.7
        found = np.concatenate([cells_of(f, X.shape) for f in folds(X, mask=mask)])
        assert np.array_equal(np.sort(found), np.flatnonzero(mask))

    def test_weights_go_to_training_and_to_the_score(self, X):
        weights = np.random.default_rng(1).random(X.shape)
        for fold in folds(X, weights=weights):
            assert np.array_equal(fold.weights, weights[tuple(fold.places)])
            total = fold.training.n_observed + fold.weights.sum()
            assert total == pytest.approx(weights.sum())

    def test_fibers_are_held_out_whole(self, X):
        for fold in folds(X, holdout="fibers", mode=1):
            held = np.zeros(X.shape, bool)
            held[tuple(fold.places)] = True
            assert np.array_equal(held.any(axis=1), held.all(axis=1))

    def test_rows_that_are_left_with_nothing_are_not_scored(self, X):
        mask = np.ones(X.shape, bool)
        mask[0] = False
        mask[0, 0, 0] = True
        found = np.concatenate([cells_of(f, X.shape) for f in folds(X, mask=mask)])
        assert 0 not in found

    def test_the_data_is_not_changed(self, X):
        before = X.copy()
        folds(X)
        assert np.array_equal(X, before)


class TestSparse:
    def test_stored_cells_are_held_out_once(self, sparse):
        found = [cells_of(f, sparse.shape)[f.x > 0] for f in folds(sparse)]
        stored = np.ravel_multi_index(sparse.indices, sparse.shape)
        assert np.array_equal(np.sort(np.concatenate(found)), np.sort(stored))

    def test_held_out_cells_are_missing_in_training(self, sparse):
        dense = sparse.to_dense()
        for fold in folds(sparse):
            assert not weights_at(fold.training, fold.places).any()
            assert np.array_equal(fold.x, dense[tuple(fold.places)])

    def test_scores_stand_for_all_cells(self, sparse, monkeypatch):
        """Weighted sums over held-out cells have the sums over all cells as their expectation."""
        monkeypatch.setattr("smartcpd._inference.selection.folds.FEWEST_SPARSE_CELLS", 500)
        dense = sparse.to_dense()
        h = np.random.default_rng(2).random(dense.shape) * (1 + dense)
        sums = []
        for seed in range(40):
            for fold in folds(sparse, seed=seed):
                sums.append(fold.weights @ h[tuple(fold.places)])
        error = np.std(sums) / np.sqrt(len(sums))
        assert abs(np.mean(sums) - h.sum()) < 4 * error
        assert error < 0.02 * h.sum()

    def test_training_does_not_look_emptier(self, sparse, monkeypatch):
        """What a cell counts in training does not depend, in expectation, on what it holds."""
        monkeypatch.setattr("smartcpd._inference.selection.folds.FEWEST_SPARSE_CELLS", 4000)
        dense = sparse.to_dense()
        total = np.zeros(dense.shape)
        everywhere = np.indices(dense.shape).reshape(3, -1)
        n = 0
        for seed in range(40):
            for fold in folds(sparse, seed=seed):
                total += weights_at(fold.training, list(everywhere)).reshape(dense.shape)
                n += 1
        draw = ZeroDraw.of(sparse, 4000, 0.25)
        expected = 1 - draw.chance(list(everywhere)).reshape(dense.shape)
        for cells in (dense > 0, dense == 0):
            gap = (total / n - expected)[cells]
            assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(gap.size)

    def test_zeros_are_drawn_where_slices_hold_much(self, sparse):
        draw = ZeroDraw.of(sparse, 2000, 0.25)
        _, chance = draw.cells(sparse, np.random.default_rng(0))
        everywhere = np.indices(sparse.shape).reshape(3, -1)
        assert chance.mean() > 1.3 * draw.chance(list(everywhere)).mean()
        assert chance.max() <= 0.25

    def test_missing_zeros_are_not_drawn(self, sparse):
        unseen = np.argwhere(sparse.to_dense()[:, :, 0] == 0)
        unseen = np.column_stack([unseen, np.zeros(len(unseen), int)])
        for fold in folds(sparse.with_missing(unseen)):
            assert not ((fold.places[2] == 0) & (fold.x == 0)).any()

    def test_unobserved_cells_are_not_held_out(self, sparse):
        observed = sparse.with_absent("unobserved")
        found = folds(observed)
        assert sum(f.n_cells for f in found) == pytest.approx(observed.nnz, abs=20)
        assert all(f.training.absent == "unobserved" and (f.x > 0).all() for f in found)

    @pytest.mark.parametrize("absent", ["zero", "unobserved"])
    def test_fibers_are_held_out_whole(self, sparse, absent):
        for fold in folds(sparse.with_absent(absent), holdout="fibers", mode=2):
            left = set(zip(*(c.tolist() for c in fold.training.indices[:2]), strict=True))
            held = set(zip(*(c.tolist() for c in fold.places[:2]), strict=True))
            assert held
            assert not left & held


class TestRefusals:
    @pytest.mark.parametrize("cv", [1, 0, 2.5, "5", True, 1000])
    def test_cv(self, X, cv):
        with pytest.raises(InvalidParameterError, match="cv must be"):
            folds(X, cv=cv)

    def test_holdout(self, X):
        with pytest.raises(InvalidParameterError, match="'cells' or 'fibers'; got 'rows'"):
            folds(X, holdout="rows")

    @pytest.mark.parametrize("mode", [3, -1, "hour"])
    def test_mode(self, X, mode):
        with pytest.raises(InvalidParameterError, match="fiber_mode"):
            folds(X, holdout="fibers", mode=mode)

    def test_fibers_of_a_matrix(self, X):
        with pytest.raises(IncompatibleError, match="matrix"):
            folds(X[0], holdout="fibers")

    def test_too_few_cells(self):
        with pytest.raises(InvalidDataError, match="smaller cv"):
            folds(np.ones((2, 1)), cv=5)

    def test_too_few_stored_cells(self):
        with pytest.raises(InvalidDataError, match="stores 1 cells, too few"):
            folds(SparseTensor([[0, 1, 2]], [3], (5, 4, 3)))
