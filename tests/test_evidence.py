"""How probable the surroundings of a solution are, and fits that decide by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from smartcpd import datasets, losses
from smartcpd._common.stacked import offsets, stack
from smartcpd._data.opening import as_storage
from smartcpd._fitting.settings import make_settings
from smartcpd._inference.intervals.information import bends_of, information
from smartcpd._methods.quasi_newton import Region
from smartcpd._objectives.slices.sums import slices_of
from smartcpd._problem.bounds import bounds
from smartcpd._problem.problem import Problem
from smartcpd._strategies.dense import DECISIVE, DenseSearch
from smartcpd._strategies.evidence import _log_volume, log_evidence

SHAPE, RANK = (7, 6, 5), 3
MAKERS = {
    "poisson": datasets.count,
    "gamma": datasets.gamma,
    "gaussian": datasets.gaussian,
    "bernoulli-odds": datasets.binary,
}


def evidence(problem, A, dispersion=1.0):
    region = Region(problem.shape, problem.loss, *bounds(problem))
    return log_evidence(problem.storage, A, region, dispersion, 1)


class TestVolume:
    """Against integrals by quadrature."""

    @pytest.mark.parametrize("slope", [0.3, 4.0, 60.0])
    def test_of_an_entry_at_its_bound(self, slope):
        found = _log_volume(*map(np.array, ([[slope]], [[[2.5]]], [[0.0]], [[np.inf]])))
        true, _ = quad(lambda t: np.exp(-slope * t - 1.25 * t * t), 0, 50, points=[0.01, 0.1, 1])
        assert found == pytest.approx(np.log(true), rel=1e-6)

    @pytest.mark.parametrize("above", [0.01, 0.5, 10.0])
    def test_of_an_entry_near_its_bound(self, above):
        found = _log_volume(*map(np.array, ([[0.0]], [[[2.5]]], [[above]], [[np.inf]])))
        true, _ = quad(lambda t: np.exp(-1.25 * t * t), -min(above, 20), 20, points=[0])
        assert found == pytest.approx(np.log(true), rel=1e-6)

    def test_of_entries_that_hang_together(self):
        B = np.array([[3.0, 1.2], [1.2, 2.0]])
        free = np.full((1, 2), np.inf)
        found = _log_volume(np.zeros((1, 2)), B[None], free, free)
        true, _ = dblquad(
            lambda s, t: np.exp(-0.5 * (B[0, 0] * s * s + 2 * B[0, 1] * s * t + B[1, 1] * t * t)),
            *(-9, 9, -9, 9),
        )
        assert found == pytest.approx(np.log(true), rel=1e-6)


@pytest.mark.parametrize("loss", MAKERS)
def test_expected_bends_are_blocks_of_the_information(loss):
    X, factors = MAKERS[loss](SHAPE, RANK, random_state=0)
    W = bends_of(factors, losses.get(loss), as_storage(X), expected=True)
    whole = information(factors, W)
    starts = offsets(SHAPE) * RANK
    for mode, A in enumerate(factors):
        slices = slices_of(as_storage(X), losses.get(loss), factors, mode)
        for i, block in enumerate(slices.expected_bends(A)):
            at = slice(starts[mode] + i * RANK, starts[mode] + (i + 1) * RANK)
            np.testing.assert_allclose(block, whole[at, at], rtol=1e-9)


@pytest.mark.parametrize("loss", MAKERS)
def test_depends_on_the_model_alone_and_not_on_how_it_is_written(loss):
    X, factors = MAKERS[loss](SHAPE, RANK, random_state=1)
    problem = Problem.build(X, RANK, loss)
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.1, 10.0, RANK)
    order = rng.permutation(RANK)
    other = [factors[0] * scales, factors[1] / scales, factors[2]]
    one, two = (evidence(problem, stack(F)) for F in (factors, [A[:, order] for A in other]))
    assert one == pytest.approx(two, rel=1e-9)


def test_exists_for_components_that_are_empty():
    X, factors = datasets.count(SHAPE, RANK, random_state=1)
    for A in factors:
        A[:, 0] = 0.0
    assert np.isfinite(evidence(Problem.build(X, RANK, "poisson"), stack(factors)))


def test_is_nothing_where_the_loss_does_not_bend_upwards():
    hill = losses.custom(lambda x, m: -m * m, lambda x, m: -2.0 * m, name="hill")
    X, factors = datasets.gaussian(SHAPE, RANK, random_state=1)
    assert evidence(Problem.build(X, RANK, hill), stack(factors)) == -np.inf


@pytest.mark.slow
def test_decides_between_solutions_that_the_data_does_not_tell_apart():
    X, _ = datasets.count((12, 12, 3), 6, a_max=1.0, random_state=0)
    problem = Problem.build(X, 6, "poisson")
    settings = make_settings(problem, n_threads=1)
    found = DenseSearch(problem, settings, np.random.default_rng(0), lambda report: False)
    result = found.from_scratch()
    assert "The data does not decide" in result.finding.sentence
    assert any(record.phase == "weighed" for record in result.history)
    A, others = stack(result.factors), [stack(run.factors) for run in result.comparison.others]
    sample = found.descents.sample
    losses = [run.objective for run in result.comparison.others]
    dispersion = sample.dispersion(A)
    tied = [
        evidence(problem, other, dispersion)
        for other, loss in zip(others, losses, strict=True)
        if loss - min(losses) < 0.5 * sample.error(other, A)
    ]
    assert len(tied) > 2
    # Others take the place of the lowest loss only where they are more probable by far. What is
    # left of a run that was not thought worth a finish changes that by a little.
    assert evidence(problem, A, dispersion) > max(tied) - DECISIVE - 1.0
