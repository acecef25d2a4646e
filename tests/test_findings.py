"""What runs say together about a solution: never more than is known."""

from dataclasses import replace

import numpy as np
import pytest

from smartcpd import datasets
from smartcpd._fitting.fit import fit
from smartcpd._methods.base import Result
from smartcpd._problem.history import Finding, History, Status
from smartcpd._strategies import restarts
from smartcpd._strategies.findings import ALONE, CHANGED, Findings, Run, n_different

RNG = np.random.default_rng(0)
FACTORS = [RNG.random((n, 3)) ** 3 for n in (12, 11, 10)]
OTHERS = [np.column_stack([F[:, :2], RNG.random(len(F)) ** 3]) for F in FACTORS]


def run(loss, *origins, factors=FACTORS, settled=True):
    return Run([F[:, ::-1] * 2.0 for F in factors], loss, settled, frozenset(origins))


def findings(*runs, error=0.0):
    return Findings(runs, min(runs, key=lambda each: each.loss), 0.01, lambda one, two: error)


class TestTheSentence:
    def test_of_one_run(self):
        assert findings(run(1.0, "start 1")).told == ALONE

    def test_of_independent_runs_with_the_same_components_and_loss(self):
        found = findings(run(1.0, "start 1"), run(1.0001, "start 2"), run(1.3, "start 3"))
        assert found.confirmed
        assert "Found independently by 2 of 3 runs" in found.told.sentence

    def test_where_two_runs_may_agree_by_chance(self):
        runs = [run(1.0, f"start {number}") for number in range(3)]
        two, three = (Findings(some, some[0], 0.01, lambda *_: 0.0, 3) for some in (runs[:2], runs))
        assert not two.confirmed
        assert (
            "Not confirmed: 2 of 2 runs ended with these components, and with so little"
            in two.told.sentence
        )
        assert two.told.found == 1
        assert three.confirmed
        assert "Found independently by 3 of 3 runs" in three.told.sentence
        assert three.told.found == 3

    @pytest.mark.parametrize(
        "other",
        [
            run(1.1, "start 2"),
            run(1.0, "start 2", factors=OTHERS),
            run(1.0, "start 2", settled=False),
        ],
        ids=["another loss", "other components", "not at its end"],
    )
    def test_of_runs_that_ended_elsewhere(self, other):
        found = findings(run(1.0, "start 1"), other)
        assert not found.confirmed
        assert "Not confirmed: the other run did not end with these" in found.told.sentence

    @pytest.mark.parametrize("shared", ["a compressed tensor", "a sample", "start 1"])
    def test_of_runs_that_have_something_in_common(self, shared):
        found = findings(run(1.0, "start 1", shared), run(1.0, "start 2", shared))
        assert not found.confirmed
        assert "Not confirmed: 2 of 2 runs ended with these components" in found.told.sentence
        assert f"but they share {shared}" in found.told.sentence

    def test_of_runs_that_have_several_things_in_common(self):
        found = findings(run(1.0, "a", "b", "c"), run(1.0, "a", "b", "c"))
        assert "but they share a, b and c, so" in found.told.sentence

    def test_of_a_child_its_parents_and_a_stranger(self):
        one, two, child = run(1.2, "start 1"), run(1.1, "start 2"), run(1.0, "start 1", "start 2")
        assert not findings(one, two, child).confirmed
        assert not findings(run(1.0, "start 1"), two, child).confirmed
        assert findings(one, two, child, run(1.0, "start 3")).confirmed
        assert findings(run(1.0, "start 1"), run(1.0, "start 2"), child).confirmed

    def test_of_solutions_that_the_data_does_not_tell_apart(self):
        runs = run(1.0, "start 1"), run(1.0, "start 2"), run(1.1, "start 3", factors=OTHERS)
        assert "not decide" not in findings(*runs, error=0.05).told.sentence
        found = findings(*runs, error=0.2)
        assert found.confirmed
        assert "The data does not decide: 1 of 3 runs ended with 1 of 3 components" in (
            found.told.sentence
        )

    def test_of_components_that_are_not_numbers(self):
        assert n_different(FACTORS, [F * np.nan for F in FACTORS]) == 3


class TestEveryFit:
    """No strategy that makes one run says anything of agreement."""

    X, _ = datasets.count((14, 13, 12), 2, a_max=1.5, random_state=0)

    @pytest.mark.parametrize("solver", ["mm", "simplex", "subsampled"])
    def test_that_makes_one_run_says_so(self, solver):
        constraint = "simplex" if solver == "simplex" else "auto"
        found = fit(self.X, 2, "poisson", solver=solver, constraint=constraint, random_state=0)
        assert found.status.converged
        assert ALONE.sentence in found.status.reason
        assert found.status.found == 1

    def test_from_a_start_of_the_users_says_nothing(self):
        start = [RNG.random((n, 2)) for n in self.X.shape]
        reason = fit(self.X, 2, "poisson", init=start).status.reason
        assert "onfirmed" not in reason

    def test_from_several_starts_of_a_method_compares_them(self):
        found = fit(self.X, 2, "poisson", solver="mm", n_init=2, random_state=0, tol=1e-4)
        assert "Found independently by 2 of 2 runs" in found.status.reason


class TestWhatGoesOn:
    def test_a_fit_that_goes_on_after_its_search_says_what_that_found(self, monkeypatch):
        monkeypatch.setattr(restarts, "FAR_OF_LITTLE", 0.0)  # some gradient is always left
        X = datasets.events((40, 30, 20), 3, 3000, random_state=0).data
        found = fit(X, 3, "poisson", random_state=0, progress=False)
        phases = {record.phase for record in found.history}
        assert "search 2" in phases
        assert any(phase.startswith("on: ") for phase in phases)
        assert "a single run" not in found.status.reason
        assert found.status.found >= 2

    def test_what_has_other_components_is_not_what_runs_found(self):
        told = Finding("Found independently by 2 of 2 runs.", 2)
        before, same, other = (
            Result(factors, History(), Status(True, "It settled."))
            for factors in (FACTORS, [F[:, ::-1] * 1.01 for F in FACTORS], OTHERS)
        )
        before = replace(before, finding=told)
        assert restarts._told_as(before, same).finding == told
        assert restarts._told_as(before, other).finding == CHANGED
