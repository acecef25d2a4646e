"""Components that are found again in halves of the data."""

from __future__ import annotations

import numpy as np
import pytest

import smartcpd
from smartcpd import SparseTensor, datasets
from smartcpd.errors import InvalidDataError, InvalidParameterError


def planted(seed, own_rows=1):
    """Two components that all subjects have, and one that a single subject has alone."""
    rng = np.random.default_rng(seed)
    subjects = rng.gamma(4.0, 0.5, (24, 3))
    subjects[:, 2] = 0.0
    subjects[:own_rows, 2] = 25.0
    others = [rng.gamma(0.4, 2.0, (size, 3)) for size in (14, 12)]
    mean = np.einsum("ir,jr,kr->ijk", subjects, *others)
    return rng.poisson(mean)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "is_sparse"), [(0, False), (1, True)])
def test_stable_and_unstable_components_are_told_apart(seed, is_sparse):
    X = planted(seed)
    data = SparseTensor(np.argwhere(X), X[X > 0], X.shape) if is_sparse else X
    found = smartcpd.replicate(data, 3, "poisson", halves=4, random_state=seed)
    alone = int(np.argmax(found.model.normalize().factors[0][0]))
    stable = found.found_again()
    assert not stable[alone]
    assert stable.sum() == 2
    assert found.median.min() == found.median[alone]


def test_the_same_seed_gives_the_same_bits():
    X, _ = datasets.count((10, 6, 5), rank=1, a_max=1.0, random_state=0)
    once, twice = (smartcpd.replicate(X, 1, "poisson", halves=4, random_state=3) for _ in "ab")
    np.testing.assert_array_equal(once.similarity, twice.similarity)


def test_a_model_of_the_users_is_judged():
    X, _ = datasets.count((10, 6, 5), rank=2, a_max=1.0, random_state=0)
    model = smartcpd.decompose(X, 2, "poisson", random_state=0)
    found = smartcpd.replicate(X, 2, model=model, mode=1, halves=2, random_state=0)
    assert found.model is model
    assert found.similarity.shape == (1, 2)
    assert list(found.to_frame()["component"]) == [1, 2]
    assert "mode 1" in str(found)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"halves": 3}, "pairs"),
        ({"mode": 2}, "too few for halves"),
        ({"mode": "day"}, "No mode is called"),
        ({"max_epoch": 3}, "no parameter of a fit"),
        ({"model": smartcpd.CPModel([np.ones((3, 1))] * 3)}, "fitted to X"),
    ],
)
def test_what_cannot_be_split_is_refused(options, match):
    X, _ = datasets.count((6, 5, 3), rank=1, a_max=1.0, random_state=0)
    with pytest.raises((InvalidDataError, InvalidParameterError), match=match):
        smartcpd.replicate(X, 1, "poisson", random_state=0, **({"halves": 2} | options))


def test_similarities_are_drawn():
    pytest.importorskip("matplotlib")
    X, _ = datasets.count((10, 6, 5), rank=2, a_max=1.0, random_state=0)
    found = smartcpd.replicate(X, 2, "poisson", halves=4, random_state=0)
    assert found.plot().get_ylim()[1] > 1.0
