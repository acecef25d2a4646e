"""Missing cells and weights: what fits make of them, and what they say about them."""

import numpy as np
import pytest
from holes import COUNTS, SEEN, TRUTH, model_of, sparse_of, weights_like

import smartcpd
from smartcpd import CPModel, SmartCPD, SparseTensor, datasets, losses, metrics
from smartcpd._data.opening import as_storage
from smartcpd._data.storage.conversion import as_dense, as_sparse
from smartcpd._fitting.fit import fit
from smartcpd._problem.checkpoints.identity import data_digest
from smartcpd._strategies.compression.filling import Filling
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError


def test_the_ways_to_say_missing_are_the_same():
    w = SEEN.astype(float)
    fits = [
        fit(COUNTS, 2, "poisson", random_state=0, **how)
        for how in ({"mask": SEEN}, {"weights": w}, {"weights": 7 * w})
    ]
    fits.append(fit(np.where(SEEN, COUNTS, np.nan), 2, "poisson", random_state=0))
    fits.append(fit(np.ma.array(COUNTS, mask=~SEEN), 2, "poisson", random_state=0))
    for other in fits:
        assert other.loss == pytest.approx(fits[0].loss, rel=1e-6)
        assert "missing" in other.status.reason
    same = fit(COUNTS, 2, "poisson", random_state=0)
    every = fit(COUNTS, 2, "poisson", random_state=0, mask=np.ones(COUNTS.shape, bool))
    assert np.array_equal(same.model.factors[0], every.model.factors[0])
    assert "missing" not in same.status.reason


DENSE_SOLVERS = [
    ("dense", "poisson", {}),
    ("dense", "gaussian", {}),
    ("dense", "bernoulli-logit", {}),
    ("subsampled", "poisson", {}),
    ("simplex", "poisson", {"constraint": {0: "simplex"}}),
    ("few-events", "poisson", {}),
    ("smd", "poisson", {}),
    ("smd", "poisson", {"dtype": "float32", "step": "jensen", "overcomplete": 1}),
    ("mm", "poisson", {}),
    ("mm", "gamma", {}),
    ("mm", "gaussian", {"constraint": "nonnegative"}),
    ("md", "poisson", {}),
    ("als", "gaussian", {}),
    ("hals", "gaussian", {"constraint": "simplex"}),
    ("ao-admm", "gaussian", {}),
    ("ao-admm", "poisson", {}),
    ("row-newton", "bernoulli-logit", {"max_epochs": 5}),
    ("lbfgs", "poisson", {}),
    ("ggn", "poisson", {}),
    ("gcp-adam", "poisson", {"max_epochs": 3}),
]


@pytest.mark.parametrize(("solver", "loss", "choices"), DENSE_SOLVERS)
def test_what_lies_in_missing_cells_changes_no_bit(solver, loss, choices):
    X = COUNTS + 0.5 if loss == "gamma" else COUNTS
    X = np.minimum(X, 1) if loss.startswith("bernoulli") else X
    found = []
    for value in (np.nan, 1e300, -7.0):
        data = np.where(SEEN, X, value)
        choices = {"max_epochs": 30, "random_state": 0} | choices
        result = fit(data, 2, loss, solver=solver, mask=SEEN, **choices)
        found.append([*result.model.factors, result.history["loss"], np.array(result.loss)])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.array_equal(one, two)
    loss_of_fit = result.model.loss(data, mask=SEEN)
    assert loss_of_fit == pytest.approx(result.loss, rel=1e-12)
    assert loss_of_fit <= result.history["loss"][0]


@pytest.mark.parametrize(("solver", "loss", "choices"), DENSE_SOLVERS)
def test_every_solver_serves_weights(solver, loss, choices):
    X = COUNTS + 0.5 if loss == "gamma" else COUNTS
    X = np.minimum(X, 1) if loss.startswith("bernoulli") else X
    w = weights_like(X)
    choices = {"max_epochs": 40, "random_state": 0} | choices
    result = fit(X, 2, loss, solver=solver, weights=w, **choices)
    assert result.loss == pytest.approx(result.model.loss(X, weights=w), rel=1e-12)
    assert result.loss <= result.history["loss"][0]


@pytest.mark.parametrize("unit", [1e-290, 1e290])
def test_weights_may_be_in_any_unit(unit):
    w = weights_like(COUNTS)
    choices = {"random_state": 0, "max_epochs": 10}
    one = fit(COUNTS, 2, "poisson", weights=w, **choices)
    other = fit(COUNTS, 2, "poisson", weights=unit * w, **choices)
    assert other.loss == pytest.approx(one.loss, rel=1e-3)


def optimum(X, loss, **how):
    best = fit(X, 2, loss, solver="lbfgs", init=TRUTH, tol=0.0, max_epochs=1000, **how)
    return best.loss


@pytest.mark.parametrize("solver", ["auto", "mm", "ggn", "lbfgs", "md", "row-newton"])
def test_fits_end_at_the_optimum_of_what_was_observed(solver):
    w = weights_like(COUNTS, 5)
    found = fit(COUNTS, 2, "poisson", solver=solver, weights=w, random_state=0, tol=1e-3)
    assert found.loss == pytest.approx(optimum(COUNTS, "poisson", weights=w), rel=2e-4)


def test_als_fills_missing_cells_by_its_own_model():
    X = model_of(TRUTH) + np.random.default_rng(0).normal(0, 0.1, COUNTS.shape)
    found = fit(X, 2, solver="als", mask=SEEN, random_state=0, tol=1e-4)
    assert found.loss == pytest.approx(optimum(X, "gaussian", mask=SEEN), rel=1e-3)
    assert np.all(np.diff(found.history["loss"]) <= 1e-12)


class TestSparse:
    STORED = COUNTS > 0

    @pytest.fixture
    def holed(self):
        return SparseTensor(
            np.nonzero(self.STORED), COUNTS[self.STORED], COUNTS.shape, missing=np.nonzero(~SEEN)
        )

    @pytest.mark.parametrize("solver", ["auto", "sparse", "mm", "lbfgs", "ggn", "md", "smd"])
    def test_missing_cells_among_zeros(self, holed, solver):
        found = fit(holed, 2, "poisson", solver=solver, random_state=0)
        best = optimum(COUNTS, "poisson", mask=SEEN)
        assert found.loss == pytest.approx(best, rel=1e-2 if solver == "smd" else 5e-4)
        assert found.loss == pytest.approx(found.model.loss(COUNTS, mask=SEEN), rel=1e-9)

    @pytest.mark.parametrize("solver", ["als", "mm", "gcp-adam", "smd"])
    def test_squares(self, holed, solver):
        epochs = 1 if solver == "gcp-adam" else 5
        choices = {"constraint": "nonnegative", "random_state": 0, "max_epochs": epochs}
        found = fit(holed, 2, "gaussian", solver=solver, **choices)
        assert found.loss < found.history["loss"][0]
        assert found.loss == pytest.approx(found.model.loss(COUNTS, mask=SEEN), rel=1e-9)

    def test_weights_of_entries(self):
        w = np.where(self.STORED, 3.0, 1.0)
        entries = np.nonzero(self.STORED)
        tensor = SparseTensor(entries, COUNTS[entries], COUNTS.shape, weights=w[entries])
        for solver in ("sparse", "lbfgs"):
            found = fit(tensor, 2, "poisson", solver=solver, random_state=0)
            assert found.loss == pytest.approx(optimum(COUNTS, "poisson", weights=w), rel=1e-3)

    @pytest.mark.parametrize("share", [0.3, 0.02])
    def test_unobserved_cells_by_default(self, share):
        X, truth = datasets.count((40, 35, 30), 2, a_max=2.0, random_state=1)
        seen = np.random.default_rng(0).random(X.shape) < share
        tensor = SparseTensor(np.nonzero(seen), X[seen], X.shape, absent="unobserved")
        # So few cells have several solutions, and not every seed finds the best.
        seeds = range(1 if share == 0.3 else 3)
        fits = [fit(tensor, 2, "poisson", random_state=seed) for seed in seeds]
        found = min(fits, key=lambda each: each.loss)
        best = fit(tensor, 2, "poisson", solver="lbfgs", init=truth, tol=0.0, max_epochs=2000)
        assert found.solver == "completion"
        assert found.loss == pytest.approx(best.loss, rel=1e-4)
        if share == 0.3:
            assert metrics.factor_mse(found.model, truth) < 1.1 * metrics.factor_mse(
                best.model, truth
            )

    def test_unobserved_cells_as_a_dense_array(self):
        seen = SEEN.astype(float)
        dense = as_dense(sparse_of(COUNTS, seen, "unobserved"))
        assert np.array_equal(dense.weights != 0, SEEN)
        assert np.array_equal(dense.array[SEEN], COUNTS[SEEN])

    @pytest.mark.parametrize("loss", ["gamma", "poisson", "gaussian"])
    def test_multiplicative_updates_without_zeros(self, loss):
        tensor = sparse_of(COUNTS + 0.5, SEEN.astype(float), "unobserved")
        found = fit(
            tensor, 2, loss, solver="mm", constraint="nonnegative", random_state=0, max_epochs=50
        )
        assert np.all(np.diff(found.history["loss"]) <= 1e-9 * abs(found.loss))


class TestUnobservedRows:
    def test_are_named_and_zero(self):
        seen = SEEN.copy()
        seen[3] = False
        seen[:, [0, 5]] = False
        found = fit(COUNTS, 2, "poisson", mask=seen, random_state=0)
        assert "No cell was observed in row 3 of mode 0; rows 0, 5 of mode 1" in found.status.reason
        assert not found.model.factors[0][3].any()
        assert not found.model.factors[1][[0, 5]].any()
        assert found.model.factors[0][[2, 4]].all()

    def test_in_sparse_data(self):
        stored = np.argwhere(COUNTS)
        missing = np.argwhere(np.broadcast_to(np.arange(16)[:, None, None] == 3, COUNTS.shape))
        values = COUNTS[COUNTS > 0]
        tensor = SparseTensor(stored, values, COUNTS.shape, missing=missing)
        assert "row 3 of mode 0" in fit(tensor, 2, "poisson", max_epochs=20).status.reason
        larger = SparseTensor(stored, values, (20, 14, 12), absent="unobserved")
        found = fit(larger, 2, "poisson", max_epochs=20, random_state=0)
        assert "rows 16, 17, 18, 19 of mode 0" in found.status.reason
        assert not found.model.factors[0][16:].any()

    def test_keep_to_their_bounds(self):
        seen = SEEN.copy()
        seen[3] = False
        found = fit(COUNTS, 2, "poisson", mask=seen, constraint="box(0.1, 9)", random_state=0)
        assert (found.model.factors[0][3] == 0.1).all()

    def test_of_coupled_rows_are_only_named(self):
        seen = SEEN.copy()
        seen[3] = False
        found = fit(COUNTS, 2, "poisson", mask=seen, constraint={0: "simplex"}, random_state=0)
        assert "the model means nothing there" in found.status.reason
        np.testing.assert_allclose(found.model.factors[0].sum(axis=0), 1.0)


class TestEstimator:
    def test_fit_and_score(self):
        data = np.where(SEEN, COUNTS, np.nan)
        est = SmartCPD(2, "poisson", random_state=0).fit(data)
        assert est.score(data) == est.score(COUNTS, mask=SEEN)
        assert est.model_.loss(data) == pytest.approx(est.loss_, rel=1e-12)
        again = SmartCPD(2, "poisson", random_state=0).fit(COUNTS, mask=SEEN)
        assert again.loss_ == est.loss_
        residual = metrics.kkt_residual(est.model_, COUNTS, mask=SEEN)
        assert residual < 0.02 < metrics.kkt_residual(est.model_, COUNTS)

    def test_explain_names_the_share(self):
        said = smartcpd.explain(COUNTS, 2, "poisson", mask=SEEN)
        assert "(30 % missing)" in said
        assert "solver dense" in said

    def test_data_is_not_changed(self):
        data, w = np.where(SEEN, COUNTS, np.nan), weights_like(COUNTS)
        before = data.copy(), w.copy()
        SmartCPD(2, "poisson", max_epochs=3).fit(data, weights=w)
        assert np.array_equal(data, before[0], equal_nan=True)
        assert np.array_equal(w, before[1])

    def test_a_checkpoint_is_of_one_mask(self):
        digests = {
            data_digest(as_storage(COUNTS, mask=mask, weights=w))
            for mask, w in [(None, None), (SEEN, None), (~SEEN, None), (None, weights_like(COUNTS))]
        }
        assert len(digests) == 4


def test_none_is_a_missing_cell_among_objects():
    X = np.array([[None, 1.0], [2.0, 3.0]], object)
    assert as_storage(X).n_missing == 1


def test_filling_is_the_product_of_means():
    columns = [np.random.default_rng(n).uniform(1, 2, n) for n in (20, 15, 10)]
    X = np.einsum("i,j,k->ijk", *columns)
    seen = np.random.default_rng(0).random(X.shape) < 0.9
    storage = as_storage(np.where(seen, X, np.nan))
    filling = Filling.of_marginals(storage, losses.get("poisson"))
    filled = filling.put_into(storage.array, storage.weights, 0, slice(None))
    np.testing.assert_allclose(filled[seen], X[seen], rtol=1e-6)
    np.testing.assert_allclose(filled, X, rtol=0.1)


MODEL = CPModel(TRUTH, loss_function="poisson")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"mask": SEEN[:-1]}, r"mask has shape \(15, 14, 12\), X \(16, 14, 12\)"),
        ({"mask": SEEN * 0.5}, "mask must be boolean.*weights="),
        ({"weights": np.ones(3)}, r"weights have shape \(3,\)"),
        ({"weights": -SEEN.astype(int)}, r"weights\[0, 0, \d\] is -1.*not negative"),
        ({"weights": np.where(SEEN, 1.0, np.nan)}, r"weights\[.*\] is nan"),
        ({"weights": np.where(SEEN, 1.0, np.inf)}, r"weights\[.*\] is inf"),
        ({"weights": np.array([["a"]])}, "weights must be numbers"),
        ({"mask": np.zeros(SEEN.shape, bool)}, "no observed cell"),
        ({"weights": np.zeros(SEEN.shape)}, "no observed cell"),
    ],
)
def test_what_makes_no_sense_is_refused(how, message):
    for call in (lambda: fit(COUNTS, 2, "poisson", **how), lambda: MODEL.loss(COUNTS, **how)):
        with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
            call()


def test_infinity_is_no_missing_cell():
    X = np.where(SEEN, COUNTS, np.inf)
    with pytest.raises(InvalidDataError, match="infinity"):
        fit(X, 2, "poisson")
    assert fit(X, 2, "poisson", mask=SEEN, max_epochs=2).loss > -np.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, "weights must be 2 numbers"),
        ({"weights": [1.0, -1.0]}, r"weights\[1\] is -1.0"),
        ({"missing": [[5, 5]]}, "out of bounds"),
        ({"missing": SparseTensor([[0, 0]], 1, (9, 9))}, r"missing has shape \(9, 9\)"),
    ],
)
def test_sparse_tensors_check_theirs(change, message):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
        SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], (3, 2), **change)


def test_weights_need_every_cell_once():
    with pytest.raises(InvalidDataError, match=r"Cell \(0, 1\) is given more than once"):
        SparseTensor([[0, 1], [0, 1]], [1.0, 2.0], (3, 2), weights=[1.0, 1.0])


@pytest.mark.parametrize("kind", ["whole", "missing", "weighted"])
def test_dense_and_sparse_data_become_each_other(kind):
    kinds = {
        "whole": np.ones(COUNTS.shape),
        "missing": SEEN * 1.0,
        "weighted": weights_like(COUNTS),
    }
    w = kinds[kind]
    dense = as_storage(COUNTS, weights=None if kind == "whole" else w)
    for absent in ("zero", "unobserved"):
        back = as_dense(sparse_of(COUNTS, w, absent))
        np.testing.assert_array_equal(back.array[w != 0], COUNTS[w != 0])
        np.testing.assert_array_equal(np.ones(w.shape) if back.weights is None else back.weights, w)
    for unit in (1.0, dense.heaviest):
        back = as_dense(as_sparse(dense, unit))
        np.testing.assert_array_equal(back.array[w != 0], COUNTS[w != 0])
        found = np.ones(w.shape) if back.weights is None else back.weights
        np.testing.assert_allclose(found * unit, np.where(back.weights is None, unit, w))


@pytest.mark.parametrize("weighted", [False, True])
def test_dense_and_sparse_data_say_the_same_of_themselves(weighted):
    w = weights_like(COUNTS) if weighted else SEEN * 1.0
    dense, sparse = as_storage(COUNTS, weights=w), sparse_of(COUNTS, w, "unobserved")
    assert (dense.absent, sparse.absent) == ("none", "unobserved")
    for storage in (dense, sparse):
        assert storage.fit_needs(3) is None
        pairs = [(x, np.ones(x.size) if w is None else w) for x, w in storage.weighted_values()]
        total = sum(float(w @ x.reshape(-1)) for x, w in pairs)
        assert total / storage.n_observed == pytest.approx(storage.mean())
        cells = storage.some_cells(100, np.random.default_rng(0))
        assert all(len(index) == 100 for index in cells)
    assert w[sparse.some_cells(100, np.random.default_rng(0))].all()
    stored = np.concatenate(list(sparse.observed_values()))
    observed = np.concatenate(list(dense.observed_values()))
    np.testing.assert_array_equal(np.sort(stored), np.sort(observed))


def test_masks_of_sparse_data_belong_to_the_tensor():
    with pytest.raises(IncompatibleError, match=r"missing=\.\.\."):
        fit(SparseTensor([[0, 1], [1, 0]]), 1, mask=np.ones((2, 2), bool))


def test_text_files_do_not_lose_weights(tmp_path):
    with pytest.raises(InvalidDataError, match="no place for the weights"):
        smartcpd.write(tmp_path / "x.tns", SparseTensor([[0, 0], [1, 1]], missing=[[0, 1]]))


def test_a_missing_cell_is_not_in_a_dense_array():
    tensor = SparseTensor([[0, 0], [1, 1]], missing=[[0, 1]])
    with pytest.raises(InvalidDataError, match="1 missing"):
        tensor.to_dense()
