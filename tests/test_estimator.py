"""The scikit-learn estimator: its conventions, and that it is the fit it claims to be."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import smartcpd
from smartcpd import SmartCPD, datasets
from smartcpd._fitting.fit import fit
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
    for data in ("X", "mask", "weights"):
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


def test_score_is_minus_the_loss(fitted):
    assert fitted.score(X) == pytest.approx(-fitted.loss_, rel=1e-12)
    assert fitted.score(X + 50) < fitted.score(X)


def test_predict_is_the_mean_of_chosen_cells():
    ones = (X > 1).astype("uint8")
    est = SmartCPD(**QUICK | {"loss": "bernoulli-odds"}).fit(ones)
    cells = np.argwhere(np.ones(X.shape))
    np.testing.assert_allclose(est.predict(cells), est.model_.full().ravel())
    np.testing.assert_array_equal(est.predict(cells), est.model_.mean(cells))
    assert ((est.predict(cells) >= 0) & (est.predict(cells) <= 1)).all()


@pytest.mark.parametrize("cells", [[[0.5, 1, 2]], [["a", "b", "c"]], [[np.nan, 0, 0]]])
def test_predict_refuses_what_is_no_index(cells, fitted):
    with pytest.raises(InvalidDataError, match="predict takes indices"):
        fitted.predict(cells)


@pytest.mark.parametrize("cells", [[[9, 0, 0]], [[-1, 0, 0]], [[0, 0]]])
def test_predict_refuses_cells_that_are_not_there(cells, fitted):
    with pytest.raises(InvalidParameterError):
        fitted.predict(cells)


def test_before_fit_there_is_nothing_to_ask():
    est = SmartCPD()
    with pytest.raises(NotFittedError):
        est.score(X)
    with pytest.raises(NotFittedError):
        est.predict([[0, 0, 0]])


def test_its_repr_shows_what_was_changed():
    assert repr(SmartCPD(rank=3, loss="poisson")) == "SmartCPD(loss='poisson', rank=3)"
