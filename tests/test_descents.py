"""When a quasi-Newton descent ends, and what it says of where it ended."""

from __future__ import annotations

import numpy as np
import pytest

from smartcpd import datasets, metrics
from smartcpd._common.stacked import stack, unstack
from smartcpd._fitting.fit import fit
from smartcpd._fitting.settings import make_settings
from smartcpd._kernels.passes import compiled_fiber_pass
from smartcpd._methods.descents import JOINED, PRECISIONS, Descents
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import fibers
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem

SHAPE, RANK = (30, 25, 20), 3


@pytest.fixture(scope="module")
def truth():
    return datasets.count(SHAPE, RANK, a_max=2.0, random_state=0)


def on(truth, n_threads):
    problem = Problem.build(truth[0], RANK, "poisson")
    settings = make_settings(problem, n_threads=n_threads)
    tracker = Tracker(problem, settings, lambda report: False, np.random.default_rng(0))
    made = Descents(problem, settings, tracker, np.random.default_rng(0))
    tracker.begin_with(stack(truth[1]))
    return made


@pytest.fixture
def descents(truth):
    return on(truth, 1)


def disturbed(truth, size):
    rng = np.random.default_rng(1)
    return stack([A * np.exp(size * rng.standard_normal(A.shape)) for A in truth[1]])


def test_a_run_that_joins_ends_soon_with_about_the_loss_of_its_rival(descents, truth):
    rival = descents.run(disturbed(truth, 0.1), "run 1")
    assert rival.settled
    before = descents.tracker.epoch
    joined = descents.run(disturbed(truth, 0.2), "run 2", rival=rival, joins=True)
    steps = descents.tracker.epoch - before
    alone = descents.run(disturbed(truth, 0.2), "run 3", rival=rival)
    assert joined.settled
    margin = JOINED * descents.resolution(rival.A)
    assert rival.loss <= joined.loss <= rival.loss + margin
    assert steps < descents.tracker.epoch - before - steps
    # It was right: left alone, it ends there.
    assert alone.loss == pytest.approx(rival.loss, abs=1e-5)


def test_a_run_with_other_components_does_not_join(descents, truth):
    rival = descents.run(disturbed(truth, 0.1), "run 1")
    # Two components in one, and one in two.
    A = disturbed(truth, 0.1)
    A[:, 0] = 0.5 * (A[:, 0] + A[:, 1])
    A[:, 1] = A[:, 2] * 1.01
    other = descents.run(A, "run 2", most=1, rival=rival, joins=True)
    assert not other.settled
    assert other.loss > rival.loss


def test_components_that_are_alike_are_followed_to_the_optimum():
    """The loss hardly tells where between collinear components the optimum is."""
    rng = np.random.default_rng(3)
    factors = [rng.random((n, 1)) + 0.7 * rng.random((n, RANK)) for n in (40, 40, 40)]
    factors = [2.0 * A for A in factors]
    X = rng.poisson(np.einsum("ir,jr,kr->ijk", *factors))
    problem = Problem.build(X, RANK, "poisson")
    settings = make_settings(problem, n_threads=1)
    found = []
    for tau in (2e-4, 1e-9):
        tracker = Tracker(problem, settings, lambda report: False, np.random.default_rng(0))
        descents = Descents(problem, settings, tracker, np.random.default_rng(0))
        tracker.begin_with(stack(factors))
        found.append(descents.run(stack(factors), "finish", tau))
    quick, exact = (unstack(c.A, X.shape) for c in found)
    assert found[0].loss - found[1].loss <= 1e-5
    # The way that is left is short next to the error that noise makes.
    assert metrics.factor_mse(quick, exact) <= 0.05 * metrics.factor_mse(exact, factors)


def test_all_that_is_used_has_been_compiled(truth, monkeypatch):
    used = set()

    def noted(dtype):
        used.add(dtype)
        return compiled_fiber_pass(dtype)

    monkeypatch.setattr(fibers, "compiled_fiber_pass", noted)
    descents, A = on(truth, 1), disturbed(truth, 0.1)
    descents.compile(A)
    before = used.copy()
    descents.run(A, "finish", tau=1e-9)
    descents.objective.estimate(A)
    assert before == used == set(PRECISIONS)


def test_a_start_of_infinite_loss_ends_no_search():
    """Merged components of other runs may be beyond the range of an exponential."""
    X, truth = datasets.count((8, 7, 6), 2, a_max=1.0, random_state=0)
    problem = Problem.build(X, 2, "poisson-log")
    settings = make_settings(problem, n_threads=1)
    tracker = Tracker(problem, settings, lambda report: False, np.random.default_rng(0))
    descents = Descents(problem, settings, tracker, np.random.default_rng(0))
    tracker.begin_with(stack(truth))
    first = descents.run(stack(truth), "run 1", most=5)
    found = descents.run(40.0 * stack(truth), "run 2", most=5)
    assert np.isfinite([first.loss, found.loss]).all()


def test_a_resolution_that_seems_endless_ends_no_descent(descents, truth, monkeypatch):
    whole = descents.run(disturbed(truth, 0.5), "run 1")
    sane, asked = descents.resolution, []

    def endless(A):
        asked.append(A)
        return sane(A) if len(asked) < 2 else 1e9

    monkeypatch.setattr(descents, "resolution", endless)
    found = descents.run(disturbed(truth, 0.5), "run 2")
    assert found.loss == pytest.approx(whole.loss, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 7, 9])
def test_what_says_that_it_converged_is_done_and_not_slow(seed):
    """Of yes/no data, entries that grow without end gain less and less, for ever."""
    counts, _ = datasets.count((12, 11, 10), 3, a_max=0.5, random_state=seed)
    asked = {"loss": "bernoulli-logit", "progress": False, "n_threads": 1}
    found = fit((counts > 0).astype(float), 3, random_state=0, **asked)
    longer = {"init": found.model, "tol": 2e-4, "max_epochs": 10_000}
    later = fit((counts > 0).astype(float), 3, **asked, **longer)
    resolution = CellSample(found.problem).resolution(stack(later.model.factors))
    assert not found.status.converged or found.loss - later.loss < 0.02 * resolution
