"""The loss follows from the values, and the sentence says why."""

import numpy as np
import pytest

import smartcpd
from smartcpd import SparseTensor, choose_loss
from smartcpd.errors import InvalidDataError

CELLS = [[0, 1], [1, 0], [2, 2]]


@pytest.mark.parametrize(
    ("values", "loss", "why"),
    [
        ([1, 1, 1], "bernoulli-odds", "0 or 1"),
        ([True, True, True], "bernoulli-odds", "0 or 1"),
        ([1.0, 2.0, 5.0], "poisson", "whole numbers from 0 to 5"),
        ([0.5, 2.0, 5.0], "poisson", "zeros among them"),
        ([-1, 2, 3], "gaussian", "negative"),
    ],
)
def test_sparse_and_dense_agree(values, loss, why):
    X = SparseTensor(CELLS, np.array(values), (3, 3))
    for tensor in (X, X.to_dense()):
        choice = choose_loss(tensor)
        assert str(choice.loss) == loss
        assert why in choice.reason


def test_positive_numbers():
    assert choose_loss(np.array([[0.5, 1.0], [2.0, 3.0]])).loss.name == "gamma"
    X = SparseTensor(CELLS, [0.5, 1.0, 2.0], (3, 3), absent="unobserved")
    assert choose_loss(X).loss.name == "gamma"


def test_missing_cells_have_no_say():
    assert choose_loss(np.array([[1.0, np.nan], [2.0, 3.0]])).loss.name == "poisson"


def test_infinity_is_no_value():
    with pytest.raises(InvalidDataError, match="infinity"):
        choose_loss(np.array([[1.0, np.inf], [2.0, 3.0]]))


def test_it_is_what_auto_does():
    X = np.random.default_rng(0).poisson(2.0, (6, 5, 4))
    model = smartcpd.decompose(X, 2, "auto", random_state=0)
    assert model.loss_function.name == "poisson"
    assert "loss poisson" in smartcpd.explain(X, 2, "auto")
