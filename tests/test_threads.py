"""One thread or two: the same bits."""

import numba
import numpy as np
import pytest

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._data.opening import as_storage
from smartcpd._fitting.fit import fit
from smartcpd._kernels.sweep import tiling
from smartcpd._objectives import fibers, objective_of
from smartcpd.errors import InvalidParameterError

SHAPE, RANK, N_FIBERS = (300, 25, 20), 12, 300
two_threads = pytest.mark.skipif(
    numba.config.NUMBA_NUM_THREADS < 2, reason="this machine has one thread"
)


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).poisson(1.0, SHAPE).astype(np.uint8)


def test_both_get_work(data):
    assert data.size >= fibers.CELLS_WORTH_THREADS
    assert tiling(SHAPE[0], N_FIBERS, RANK).worth_threads


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


@pytest.mark.slow
@two_threads
@pytest.mark.parametrize("choices", [{}, {"constraint": "simplex"}, {"solver": "smd"}])
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


class TestSharing:
    @pytest.mark.parametrize("n_threads", [1, 2, 5])
    @pytest.mark.parametrize("n_parts", [1, 2, 7])
    def test_every_part_is_worked_on_once(self, n_parts, n_threads):
        counts = np.zeros(n_parts, int)

        def work(first, end):
            counts[first:end] += 1

        threads.share(work, n_parts, n_threads)
        assert (counts == 1).all()

    def test_an_error_of_any_thread_is_raised_when_all_have_ended(self):
        ended = []

        def work(first, end):
            ended.append(first)
            if first > 0:
                raise ValueError("of a helper")

        with pytest.raises(ValueError, match="of a helper"):
            threads.share(work, 2, 2)
        assert sorted(ended) == [0, 1]
