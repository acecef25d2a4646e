"""Neighbouring modes taken for one: the same cells, the same components."""

import numpy as np
import pytest

from smartcpd import losses
from smartcpd._data.storage import Dense
from smartcpd._objectives.dense import DenseObjective
from smartcpd._strategies.compression import Joining

SHAPES = [((2,) * 8, 3, (8, 4, 8)), ((4, 2, 3, 5), 6, (8, 3, 5)), ((9, 8, 7, 6), 3, None)]


@pytest.mark.parametrize(("shape", "rank", "joined"), SHAPES)
def test_columns_of_joined_modes_are_split_into_those_of_the_modes(shape, rank, joined):
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((n, rank)) for n in shape]
    joining = Joining.of(shape, rank)
    X = rng.standard_normal(shape)
    whole = joining.joined(Dense(X))
    assert np.array_equal(whole.array.reshape(shape), X)
    if joined is None:
        assert whole.shape == shape
    else:
        assert len(whole.shape) == 3
        assert min(whole.shape) >= min(joined)
    long = []
    left = iter(factors)
    for group in joining.groups:
        columns = np.ones((1, rank))
        for _ in group:
            columns = (columns[:, None] * next(left)).reshape(-1, rank)
        long.append(columns)
    for F, G in zip(joining.split(long), factors, strict=True):
        cosines = np.abs((F * G).sum(0)) / np.linalg.norm(F, axis=0) / np.linalg.norm(G, axis=0)
        np.testing.assert_allclose(cosines, 1.0, rtol=1e-10)


@pytest.mark.parametrize("shape", [(2,) * 10, (3,) * 7, (2, 3, 4, 5, 6, 7), (7, 2, 9, 2, 8)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_over_joined_modes_is_a_pass_over_all(shape, dtype, weighted, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.poisson(2.0, shape).astype(np.float64)
    X = np.asfortranarray(X) if weighted else X
    storage = Dense(X, (rng.random(shape) < 0.7) * 1.5 if weighted else None)
    A = rng.random((sum(shape), 3)).astype(dtype)
    loss = losses.get("poisson")
    joined = DenseObjective(storage, loss)
    assert joined._long is not None
    monkeypatch.setattr("smartcpd._objectives.dense.SHORT_FIBERS", 0)
    plain = DenseObjective(storage, loss)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    value, gradient = plain.gradient(A)
    found, pulled = joined.gradient(A)
    assert found == pytest.approx(value, rel=tolerance)
    assert joined.estimate(A).loss == pytest.approx(value, rel=tolerance)
    np.testing.assert_allclose(pulled, gradient, atol=tolerance * np.abs(gradient).max())
