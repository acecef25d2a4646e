"""The scikit-learn estimator: its conventions, and that it is the fit it claims to be."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import smartcpd
from smartcpd import SmartCPD, SparseTensor, datasets
from smartcpd._fitting import warning
from smartcpd._fitting.fit import fit
from smartcpd._problem.history import Status
from smartcpd.errors import InvalidDataError, InvalidParameterError

X, _ = datasets.count((9, 8, 7), 2, a_max=1.5, random_state=0)
QUICK = {"rank": 2, "loss": "poisson", "max_epochs": 5, "random_state": 0}

# predict asks for cells of the fitted tensor, since there are no samples to predict for; what these
# checks would find out about fit itself is tested below.
INDICES = "predict takes indices of cells, not samples"
FAILING = {
    "check_n_features_in_after_fitting": INDICES,
    "check_estimators_dtypes": INDICES,
    "check_dtype_object": INDICES,
    "check_estimators_nan_inf": INDICES,
    "check_estimators_pickle": INDICES,
    "check_f_contiguous_array_estimator": INDICES,
    "check_methods_sample_order_invariance": INDICES,
    "check_methods_subset_invariance": INDICES,
    "check_dict_unchanged": INDICES,
    "check_fit_idempotent": INDICES,
    "check_fit2d_predict1d": INDICES,
    "check_estimator_sparse_array": INDICES,
    "check_estimator_sparse_matrix": INDICES,
    "check_sample_weight_equivalence_on_dense_data": INDICES,
    "check_sample_weight_equivalence_on_sparse_data": "a SparseTensor has weights of its own",
}


@parametrize_with_checks(
    [SmartCPD(rank=2, max_epochs=5)], expected_failed_checks=lambda estimator: FAILING
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return SmartCPD(**QUICK).fit(X)


def test_it_is_the_fit_of_its_parameters(fitted):
    result = fit(X, **QUICK)
    assert fitted.loss_ == result.loss
    assert fitted.status_ == result.status
    for A, B, C in zip(fitted.factors_, result.model.factors, fitted.model_.factors, strict=True):
        np.testing.assert_array_equal(A, B)
        np.testing.assert_array_equal(A, C)
    np.testing.assert_array_equal(fitted.weights_, result.model.weights)
    np.testing.assert_array_equal(fitted.history_["loss"], result.history["loss"])
    assert fitted.n_features_in_ == 8


def test_decompose_gives_the_same_model(fitted):
    model = smartcpd.decompose(X, **QUICK)
    np.testing.assert_array_equal(model.full(), fitted.model_.full())


def test_its_parameters_are_those_of_fit():
    ours = inspect.signature(SmartCPD).parameters
    theirs = dict(inspect.signature(fit).parameters)
    for data in ("X", "mask", "weights", "exposure"):
        del theirs[data]
    assert list(ours) == list(theirs)
    for name in set(ours) - {"rank"}:
        assert ours[name].default == theirs[name].default, name


def test_every_parameter_is_documented():
    text = inspect.getdoc(SmartCPD)
    for name in inspect.signature(SmartCPD).parameters:
        assert f"\n{name} : " in text, name


def test_fit_returns_itself_and_keeps_its_parameters():
    est = SmartCPD(**QUICK, constraint={0: "simplex"})
    before = est.get_params()
    assert est.fit(X) is est
    assert est.get_params() == before


def test_parameters_are_stored_untouched():
    given = [np.ones((9, 2)), np.ones((8, 2)), np.ones((7, 2))]
    est = SmartCPD(rank="not checked here", init=given)
    assert est.get_params()["rank"] == "not checked here"
    assert est.init is given
    assert est.set_params(rank=3).rank == 3
    with pytest.raises(ValueError, match="Invalid parameter 'ranks'"):
        est.set_params(ranks=3)


def test_a_clone_has_the_parameters_but_not_the_fit(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")
    np.testing.assert_array_equal(copy.fit(X).factors_[0], fitted.factors_[0])


def test_fitting_again_forgets_the_first_fit(fitted):
    est = SmartCPD(**QUICK).fit(X[:5])
    np.testing.assert_array_equal(est.fit(X).factors_[0], fitted.factors_[0])
    assert est.factors_[0].shape == (9, 2)


def test_pickling(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.loss_ == fitted.loss_
    assert copy.status_ == fitted.status_
    assert copy.score(X) == fitted.score(X)
    assert copy.history_.objective.tolist() == fitted.history_.objective.tolist()
    for A, B in zip(copy.factors_, fitted.factors_, strict=True):
        np.testing.assert_array_equal(A, B)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "object"])
def test_data_of_any_dtype(dtype, fitted):
    est = SmartCPD(**QUICK).fit(X.astype(dtype))
    np.testing.assert_array_equal(est.factors_[0], fitted.factors_[0])


class TestScore:
    """The score is the mean log-likelihood of cells that the rows of their slices do not know."""

    def test_a_search_of_scikit_learn_finds_rank_and_loss(self):
        planted, _ = datasets.count((18, 14, 12), 2, a_max=2.0, random_state=1)
        grid = {"rank": [1, 2, 3], "loss": ["gaussian", "poisson"]}
        found = GridSearchCV(SmartCPD(random_state=0, effort=0), grid, cv=2).fit(planted)
        assert found.best_params_ == {"rank": 2, "loss": "poisson"}

    @pytest.mark.parametrize("cv", [2, 3, 4])
    def test_rows_can_be_held_out_in_any_number(self, cv):
        assert np.isfinite(cross_val_score(SmartCPD(**QUICK), X, cv=cv)).all()

    def test_it_is_on_the_scale_of_the_data(self, fitted):
        inside = fitted.model_.score_samples(X).mean()
        assert inside - 0.3 < fitted.score(X) < inside
        assert fitted.score(X + 50) < fitted.score(X)

    def test_cells_without_a_known_row_do_not_count(self, fitted):
        holes = X.astype(float)
        holes[4, 1:] = np.nan  # the rest of this slice is never all that is known of it
        holes[5] = np.nan
        assert np.isfinite(fitted.score(holes))

    def test_the_number_of_rows_may_be_one(self, fitted):
        assert np.isfinite(fitted.score(X[:1]))

    def test_sparse_data_gives_the_score_of_the_same_dense_data(self, fitted):
        sparse = SparseTensor(np.nonzero(X), X[np.nonzero(X)], X.shape)
        assert fitted.score(sparse) == pytest.approx(fitted.score(X), rel=1e-6)


class TestWarnings:
    def test_a_limit_is_said(self):
        with pytest.warns(ConvergenceWarning, match="max_epochs=5"):
            SmartCPD(**QUICK).fit(X)
        with pytest.warns(ConvergenceWarning, match="max_epochs=5"):
            smartcpd.decompose(X, **QUICK)

    def test_that_nothing_confirms_a_fit_is_said_once(self, monkeypatch):
        monkeypatch.setattr(warning, "_told", set())
        alone = Status(True, "Converged.", found=1)
        with pytest.warns(UserWarning, match="Not confirmed"):
            warning.warn_of(alone)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warning.warn_of(alone)
            warning.warn_of(Status(True, "Converged.", found=2))
            warning.warn_of(Status(False, "Interrupted.", interrupted=True))

    def test_the_status_counts_the_runs(self):
        status = SmartCPD(1, "poisson", random_state=0).fit(X).status_
        assert f"Found independently by {status.found} of" in status.reason


class TestLoss:
    @pytest.mark.parametrize(
        ("data", "name"),
        [(X, "poisson"), (X > 1, "bernoulli-odds"), (X + 0.5, "gamma"), (X - 0.5, "gaussian")],
    )
    def test_the_values_choose_it_and_the_status_says_why(self, data, name):
        est = SmartCPD(1, max_epochs=3, random_state=0).fit(data)
        assert str(est.model_.loss_function) == name
        reason = smartcpd.choose_loss(data).reason
        assert reason.startswith(f"{name}, because")
        assert f"Loss {reason}." in est.status_.reason
        assert f"loss {reason}" in smartcpd.explain(data, 1)

    def test_a_loss_of_the_users_is_no_choice(self, fitted):
        assert "because" not in fitted.status_.reason


class TestConventions:
    def test_components_turn_rows_into_data(self, fitted):
        rows = fitted.transform(X[:3])
        assert fitted.components_.shape == (2, 8, 7)
        expected = np.tensordot(rows, fitted.components_, 1)
        np.testing.assert_allclose(fitted.inverse_transform(rows), expected)
        with pytest.raises(InvalidDataError, match="rows of 2 numbers"):
            fitted.inverse_transform(rows[:, :1])

    def test_names_count_from_one(self, fitted):
        assert list(fitted.get_feature_names_out()) == ["component 1", "component 2"]
        assert fitted.n_iter_ == fitted.history_[-1].epoch > 0
        assert not hasattr(fitted, "feature_names_in_")

    def test_weights_of_slices(self):
        chosen = np.linspace(0.5, 2.0, 9)
        whole = np.array(np.broadcast_to(chosen[:, None, None], X.shape))
        expected = SmartCPD(**QUICK).fit(X, weights=whole).factors_[0]
        for given in ({"sample_weight": chosen}, {"weights": chosen[:, None, None]}):
            np.testing.assert_array_equal(SmartCPD(**QUICK).fit(X, **given).factors_[0], expected)
        both = SmartCPD(**QUICK).fit(X, sample_weight=chosen, weights=np.ones(7)).factors_[0]
        np.testing.assert_array_equal(both, expected)
        with pytest.raises(InvalidParameterError, match="9 slices"):
            SmartCPD(**QUICK).fit(X, sample_weight=chosen[:4])
        with pytest.raises(InvalidParameterError, match=r"reshape\(-1, 1, 1\)"):
            SmartCPD(**QUICK).fit(X, weights=chosen)

    def test_a_table_has_labels(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X[:, :, 0], index=list("abcdefghi"), columns=list("ABCDEFGH"))
        est = SmartCPD(**QUICK).fit(frame)
        assert list(est.feature_names_in_) == list("ABCDEFGH")
        assert [mode.name for mode in est.model_.modes] == ["row", "column"]
        assert est.model_.modes[0].labels.tolist() == list("abcdefghi")
        assert isinstance(est.transform(frame), np.ndarray)
        shown = est.set_output(transform="pandas").transform(frame[:4])
        assert list(shown.index) == list("abcd")
        assert list(shown.columns) == ["component 1", "component 2"]
        with pytest.raises(ValueError, match="feature names should match"):
            est.transform(frame.rename(columns={"A": "Z"}))

    def test_a_table_of_events_is_not_a_matrix(self):
        pd = pytest.importorskip("pandas")
        with pytest.raises(InvalidDataError, match="from_table"):
            SmartCPD(**QUICK).fit(pd.DataFrame({"city": ["Rome", "Oslo"], "n": [1, 2]}))


def test_predict_is_the_mean_of_chosen_cells():
    ones = (X > 1).astype("uint8")
    est = SmartCPD(**QUICK | {"loss": "bernoulli-odds"}).fit(ones)
    cells = np.argwhere(np.ones(X.shape))
    np.testing.assert_allclose(est.predict(cells), est.model_.full().ravel())
    np.testing.assert_array_equal(est.predict(cells), est.model_.mean(cells))
    assert ((est.predict(cells) >= 0) & (est.predict(cells) <= 1)).all()


@pytest.mark.parametrize("cells", [[[0.5, 1, 2]], [["a", "b", "c"]], [[np.nan, 0, 0]]])
def test_predict_refuses_what_is_no_index(cells, fitted):
    with pytest.raises(InvalidParameterError):
        fitted.predict(cells)


@pytest.mark.parametrize("cells", [[[9, 0, 0]], [[-1, 0, 0]], [[0, 0]]])
def test_predict_refuses_cells_that_are_not_there(cells, fitted):
    with pytest.raises(InvalidParameterError):
        fitted.predict(cells)


def test_predict_says_what_takes_data(fitted):
    with pytest.raises(InvalidParameterError, match=r"transform, and full\(\)"):
        fitted.predict(X[:2])


def test_before_fit_there_is_nothing_to_ask():
    est = SmartCPD()
    with pytest.raises(NotFittedError):
        est.score(X)
    with pytest.raises(NotFittedError):
        est.predict([[0, 0, 0]])


def test_its_repr_shows_what_was_changed():
    assert repr(SmartCPD(rank=3, loss="poisson")) == "SmartCPD(loss='poisson', rank=3)"
