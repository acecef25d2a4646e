"""One thread or two: the same bits."""

import numba
import numpy as np
import pytest

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._data.opening import as_storage
from smartcpd._fitting.fit import fit
from smartcpd._objectives import objective_of
from smartcpd.errors import InvalidParameterError

# At this size both threads get work, in passes over the data and in steps.
SHAPE, RANK, N_FIBERS = (200, 120, 60), 30, 150
two_threads = pytest.mark.skipif(
    numba.config.NUMBA_NUM_THREADS < 2, reason="this machine has one thread"
)


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).poisson(1.0, SHAPE).astype(np.uint8)


@two_threads
def test_value_and_gradient(data):
    A = np.random.default_rng(1).random((sum(SHAPE), RANK))
    results = []
    for n_threads in (1, 2):
        with threads.limited_to(n_threads):
            objective = objective_of(as_storage(data), losses.get("poisson"), n_threads)
            results.append((objective.estimate(A).loss, *objective.gradient(A)))
    (value, again, gradient), other = results
    assert (value, again) == other[:2]
    np.testing.assert_array_equal(gradient, other[2])


@two_threads
@pytest.mark.parametrize("choices", [{}, {"constraint": "simplex"}])
def test_a_whole_fit(data, choices):
    given = {"n_fibers": N_FIBERS, "max_epochs": 2, "random_state": 0} | choices
    one, two = (fit(data, RANK, "poisson", n_threads=n, **given) for n in (1, 2))
    assert one.loss == two.loss
    for A, B in zip(one.model.factors, two.model.factors, strict=True):
        np.testing.assert_array_equal(A, B)


def test_more_threads_than_there_are_is_no_error():
    assert threads.resolve(10_000) == threads.resolve(None) == numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize("n_threads", [0, -1])
def test_fewer_than_one_is_refused(n_threads):
    with pytest.raises(InvalidParameterError, match=f"n_threads .* got {n_threads}"):
        threads.resolve(n_threads)


def test_the_number_of_threads_is_restored():
    before = numba.get_num_threads()
    with pytest.raises(RuntimeError), threads.limited_to(1):  # noqa: PT012
        assert numba.get_num_threads() == 1
        raise RuntimeError
    assert numba.get_num_threads() == before
