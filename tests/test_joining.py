"""Neighbouring modes taken for one: the same cells, the same components."""

import numpy as np
import pytest

from smartcpd._data.storage import Dense
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
