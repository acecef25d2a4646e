"""What cannot be decomposed is refused before any work, and the message says where and why."""

import math
import re

import numpy as np
import pytest

from smartcpd import decompose
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd.errors import InvalidDataError, InvalidParameterError, SmartCPDError

SHAPE = (4, 3, 2)
BAD_CELL = (2, 1, 0)


def spoilt(value, dtype=float, fill=1):
    X = np.full(SHAPE, fill, dtype)
    X[BAD_CELL] = value
    return X


def refusal(X, loss="gaussian", kind=InvalidDataError, rank=2, **parameters):
    """The message of a refused fit, which must not have begun."""

    def never(report):
        pytest.fail("the fit began")

    with pytest.raises(kind) as error:
        fit(X, rank, loss, callback=never, **parameters)
    assert isinstance(error.value, SmartCPDError)
    assert isinstance(error.value, ValueError)
    return str(error.value)


class TestCells:
    @pytest.mark.parametrize(
        ("loss", "X", "value"),
        [
            ("gaussian", spoilt(np.inf), "infinity"),
            ("gaussian", spoilt(-np.inf), "infinity"),
            ("huber(1)", spoilt(np.inf, "float32"), "infinity"),
            ("poisson", spoilt(np.inf), "infinity"),
            ("gaussian", spoilt(np.inf, "float16"), "infinity"),
            ("poisson", spoilt(-1), "-1"),
            ("poisson", spoilt(-3, "int16"), "-3"),
            ("poisson-log", spoilt(-1), "-1"),
            ("negative-binomial(1)", spoilt(-1), "-1"),
            ("gamma", spoilt(-0.5), "-0.5"),
            ("rayleigh", spoilt(-0.5), "-0.5"),
            ("beta(0.5)", spoilt(-0.5), "-0.5"),
            ("bernoulli-odds", spoilt(2, "uint8"), "2"),
            ("bernoulli-odds", spoilt(-1, "int8"), "-1"),
            ("bernoulli-logit", spoilt(0.5), "0.5"),
            ("bernoulli-logit", spoilt(np.inf), "infinity"),
        ],
    )
    def test_the_cell_and_its_value_are_named(self, loss, X, value):
        assert f"X[2, 1, 0] is {value}" in refusal(X, loss)

    def test_the_first_of_several_is_named(self):
        X = spoilt(np.inf)
        X[3, 2, 1] = -np.inf
        assert "X[2, 1, 0] is infinity" in refusal(X)

    def test_in_any_layout(self):
        assert "X[2, 1, 0]" in refusal(np.asfortranarray(spoilt(np.inf)))
        assert "X[1, 1, 1]" in refusal(spoilt(np.inf)[::-1, :, ::-1])

    def test_far_into_a_large_tensor(self):
        X = np.zeros((3000, 40, 40), np.float32)
        X[2990, 39, 38] = np.inf
        assert "X[2990, 39, 38] is infinity" in refusal(X)

    @pytest.mark.parametrize(
        ("loss", "X"),
        [
            ("poisson", spoilt(0.5)),
            ("gamma", spoilt(0.0)),
            ("rayleigh", spoilt(0.0)),
            ("bernoulli-odds", spoilt(False, bool, True)),
            ("gaussian", spoilt(-7)),
            ("poisson", np.zeros(SHAPE)),
            ("gaussian", np.zeros(SHAPE)),
            ("bernoulli-logit", np.ones(SHAPE)),
        ],
    )
    def test_unusual_but_possible_data_is_fitted(self, loss, X):
        result = fit(X, 2, loss, max_epochs=2, random_state=0)
        assert math.isfinite(result.loss)
        assert all(np.isfinite(A).all() for A in result.model.factors)

    def test_a_model_checks_the_data_it_is_compared_with(self):
        model = CPModel([np.ones((n, 1)) for n in SHAPE], loss_function="poisson")
        with pytest.raises(InvalidDataError, match=re.escape("X[2, 1, 0] is -1")):
            model.loss(spoilt(-1))


class TestArrays:
    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.ones(5), r"at least two modes; got 1, shape \(5,\)"),
            (np.float64(3.0), r"at least two modes; got 0, shape \(\)"),
            (np.ones((4, 0, 2)), r"mode 1 of shape \(4, 0, 2\)"),
            (np.ones((0, 3)), r"mode 0 of shape \(0, 3\)"),
            (np.ones((4, 3, 0)), r"mode 2 of shape \(4, 3, 0\)"),
            (np.ones((3, 3), complex), r"complex128.*Complex data not supported"),
            (np.array([["a", "b"], ["c", "d"]]), "real numbers"),
            (np.array([["a", 1.0], [2.0, 3.0]], object), "must hold numbers"),
            (np.ones((2, 2), "datetime64[s]"), "datetime64"),
            ("poisson", "real numbers"),
            (None, "."),
        ],
    )
    def test_what_is_no_tensor_is_refused(self, X, message):
        assert re.search(message, refusal(X))

    def test_ragged_lists(self):
        with pytest.raises(ValueError, match="inhomogeneous"):
            fit([[1.0, 2.0], [3.0]], 1)

    def test_a_mask_is_not_silently_ignored(self):
        X = np.ma.masked_greater(spoilt(1000.0), 100.0)
        result = fit(X, 1, random_state=0)
        assert "1 cell (4.2 %) is missing" in result.status.reason
        assert result.loss < 1e-6

    def test_numbers_in_an_object_array_are_accepted(self):
        X = np.array([[1, 2.5], [3, 4]], object)
        assert math.isfinite(fit(X, 1, max_epochs=1, random_state=0).loss)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 0}, "rank .* got 0"),
        ({"rank": 2.5}, "rank .* got 2.5"),
        ({"n_fibers": 0}, "n_fibers .* got 0"),
        ({"inner_iterations": 0}, "inner_iterations .* got 0"),
        ({"max_epochs": 0}, "max_epochs .* got 0"),
        ({"max_epochs": 1.5}, "max_epochs .* got 1.5"),
        ({"max_time": 0}, "max_time .* got 0"),
        ({"max_time": -1.0}, "max_time .* got -1.0"),
        ({"tol": -1}, "tol .* got -1"),
        ({"tol": math.nan}, "tol .* got nan"),
        ({"kkt_tol": -0.1}, "kkt_tol .* got -0.1"),
        ({"n_init": 0}, "n_init .* got 0"),
        ({"n_threads": 0}, "n_threads .* got 0"),
        ({"dtype": "float16"}, "dtype .* got 'float16'"),
        ({"dtype": "int64"}, "dtype .* got 'int64'"),
        ({"solver": "newton"}, "Unknown solver 'newton'"),
        ({"init": "zeros"}, "init .* got 'zeros'"),
        ({"loss": "poison"}, "Did you mean 'poisson'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(change, message):
    X = np.ones(SHAPE)
    assert re.search(message, refusal(X, **({"kind": InvalidParameterError} | change)))


def test_the_rank_is_checked_before_the_data():
    # The data is the expensive part: a wrong number is noticed first.
    assert "rank" in refusal(spoilt(np.inf), rank=0, kind=InvalidParameterError)
    assert "loss" in refusal(spoilt(np.inf), loss="poison", kind=InvalidParameterError)


@pytest.mark.parametrize("n_jobs", [0, "two"])
def test_n_jobs_that_makes_no_sense_is_refused(n_jobs):
    with pytest.raises((ValueError, TypeError)):
        fit(np.ones(SHAPE), 1, n_jobs=n_jobs, max_epochs=1)


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="ranks"):
        decompose(np.ones(SHAPE), 2, ranks=3)


def test_data_that_vanishes_next_to_eps_is_refused_with_the_way_out():
    with pytest.raises(InvalidDataError, match=r"values of about 1e-09.*smaller units"):
        fit(np.full((3, 3, 3), 1e-9), 1, "gamma")
