"""Starts are matched: what they share is stable, what they do not is not, and the user is told."""

import csv
import json

import numpy as np
import pytest

from smartcpd import CPModel, Mode, SmartCPD, datasets
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd._fitting import persistence
from smartcpd._fitting.consensus import Stability, build
from smartcpd._fitting.fit import fit
from smartcpd._problem.history import History, Record, Status
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.report import write_report

RNG = np.random.default_rng(0)
SHAPE = (14, 12, 10)
FACTORS = [RNG.gamma(0.5, 1.0, (size, 4)) for size in SHAPE]
MODEL = CPModel(FACTORS, loss_function="poisson")
X, _ = datasets.count((16, 14, 12), 3, random_state=1)


def other_columns(model, columns, seed=1):
    """The model with some components replaced."""
    rng = np.random.default_rng(seed)
    factors = [A.copy() for A in model.factors]
    for A in factors:
        A[:, columns] = rng.gamma(0.5, 1.0, (len(A), len(columns)))
    return CPModel(factors, loss_function="poisson")


class TestMatching:
    def test_order_scale_and_paired_signs_do_not_matter(self):
        turned = [A[:, [2, 0, 3, 1]] * s for A, s in zip(FACTORS, (-2.0, -0.5, 3.0), strict=True)]
        found = build(MODEL, 1.0, [(CPModel(turned), 1.0)])
        np.testing.assert_allclose(found.stability, 1.0)
        assert found.agree
        assert found.warning == ""
        assert len(found.components) == 4

    def test_a_component_of_the_opposite_sign_is_another(self):
        flipped = [FACTORS[0] * np.array([1, 1, 1, -1]), *FACTORS[1:]]
        found = build(MODEL, 1.0, [(CPModel(flipped), 1.0)])
        assert found.stability.tolist() == pytest.approx([1, 1, 1, 0])

    def test_weights_have_signs_too(self):
        plain = CPModel(FACTORS, [1, 1, 1, -1])
        flipped = CPModel([FACTORS[0] * np.array([1, 1, 1, -1]), *FACTORS[1:]])
        np.testing.assert_allclose(build(plain, 1.0, [(flipped, 1.0)]).stability, 1.0)

    def test_alike_in_all_modes_but_one_is_not_the_same(self):
        flat = [np.ones((size, 1)) for size in (9, 9, 9, 9)]
        bent = [*flat[:3], np.array([[9.0], *[[1.0]] * 8])]
        assert not build(CPModel(flat), 1.0, [(CPModel(bent), 1.0)]).agree

    def test_what_only_others_found_is_listed(self):
        second = other_columns(MODEL, [1, 3])
        found = build(MODEL, 1.0, [(second, 1.1), (second, 1.2)], resolution=1.0)
        assert [c.column for c in found.components] == [0, 1, 2, 3, None, None]
        assert [c.found for c in found.components] == [3, 1, 3, 1, 2, 2]
        assert found.differing == 2
        assert "disagree in 2 of 4 components" in found.warning
        assert found.rank == 4

    def test_a_start_counts_less_the_higher_its_loss(self):
        second = other_columns(MODEL, [0])
        near = build(MODEL, 1.0, [(MODEL, 1.0), (second, 1.0)], resolution=0.1)
        far = build(MODEL, 1.0, [(MODEL, 1.0), (second, 2.0)], resolution=0.1)
        assert near.stability[0] == pytest.approx(0.5)
        assert far.stability[0] > 0.9
        assert far.stability[1] == pytest.approx(1.0)

    def test_dead_components_neither_agree_nor_disagree(self):
        def dying(seed):
            model = other_columns(MODEL, [2], seed)
            return CPModel([model.factors[0] * [1, 1, 1e-9, 1], *model.factors[1:]])

        found = build(dying(1), 1.0, [(dying(2), 1.0)])
        assert found.agree
        assert len(found.components) == 4

    def test_a_model_bred_of_several_starts_is_not_one_of_them(self):
        found = build(MODEL, 1.0, [(MODEL, 1.1), (other_columns(MODEL, [0]), 1.2)], own=False)
        assert found.n_starts == 2
        assert [c.found for c in found.components] == [1, 2, 2, 2, 1]

    def test_the_average_is_what_they_have_in_common(self):
        noisy = [
            CPModel([A * (1 + 0.05 * rng.standard_normal(A.shape)) for A in FACTORS])
            for rng in map(np.random.default_rng, range(8))
        ]
        found = build(noisy[0], 1.0, [(m, 1.0) for m in noisy[1:]])
        assert found.model.rank == 4
        error = np.linalg.norm(found.model.full() - MODEL.full())
        assert error < 0.6 * np.linalg.norm(noisy[0].full() - MODEL.full())

    def test_stable_components_alone(self):
        found = build(MODEL, 1.0, [(other_columns(MODEL, [0]), 1.0)])
        assert found.stable().rank == 3
        assert found.stable(0.0).rank == len(found.components)
        with pytest.raises(InvalidParameterError, match=r"1\.5"):
            found.stable(1.5)

    def test_closeness_of_the_losses_changes_the_advice(self):
        others = [(other_columns(MODEL, [0]), 1.001)]
        assert "does not decide" in build(MODEL, 1.0, others, resolution=0.1).warning
        assert "Use more starts" in build(MODEL, 1.0, others, resolution=1e-6).warning
        assert "Use more starts" in build(MODEL, 1.0, others, resolution=0.0).warning
        assert "let them run longer" in build(MODEL, 1.0, others, settled=False).warning


class TestText:
    def test_labels_are_shown(self):
        modes = [Mode(n, [f"{n}{k}" for k in range(s)]) for n, s in zip("abc", SHAPE, strict=True)]
        labelled = CPModel(FACTORS, loss_function="poisson", modes=modes)
        second = CPModel(other_columns(MODEL, [0]).factors, modes=modes)
        text = str(build(labelled, 1.0, [(second, 1.0)], n_stopped=1))
        assert "2 starts came to their end" in text
        assert "1 was stopped early and not counted" in text
        assert "Found by other starts only" in text
        peak = f"a{FACTORS[0][:, 1].argmax()}, b{FACTORS[1][:, 1].argmax()}"
        assert peak in text

    def test_without_labels(self):
        text = str(build(MODEL, 1.0, [(MODEL, 1.0)]))
        assert "about" not in text
        assert text.endswith("The best two starts found the same components.")
        assert repr(build(MODEL, 1.0, [(MODEL, 1.0)])) == (
            "Consensus(2 starts, 4 components, stability 1.00 to 1.00)"
        )


class TestFits:
    def test_every_start_is_run_to_its_end(self):
        estimator = SmartCPD(3, "poisson", n_init=4, consensus=True, random_state=0).fit(X)
        found = estimator.consensus_
        assert found.n_starts == 4
        assert found.n_stopped == 0
        assert found.stability.min() > 0.99
        assert "Found independently" in str(estimator.status_)
        assert estimator.loss_ == pytest.approx(found.losses[0])

    def test_too_high_a_rank_is_noticed(self):
        parameters = {"solver": "mm", "n_init": 4, "consensus": True, "random_state": 0}
        result = fit(X, 7, "poisson", **parameters)
        assert result.consensus.stability.min() < 0.9
        assert result.consensus.warning
        assert str(result.status).endswith(result.consensus.warning)

    @pytest.mark.parametrize(
        ("solver", "n_starts", "n_stopped"), [("mm", 2, 4), ("dense", None, None)]
    )
    def test_a_race_counts_those_that_were_not_stopped(self, solver, n_starts, n_stopped):
        found = fit(X, 3, "poisson", solver=solver, n_init=6, random_state=0).consensus
        assert found.n_starts >= 2
        if n_starts:
            assert (found.n_starts, found.n_stopped) == (n_starts, n_stopped)

    def test_the_model_is_that_of_the_lowest_loss(self):
        parameters = {"solver": "mm", "max_epochs": 60, "random_state": 3}
        several = fit(X, 5, "poisson", n_init=3, consensus=True, **parameters)
        assert several.loss == pytest.approx(min(several.consensus.losses))

    def test_it_does_not_depend_on_how_many_run_at_a_time(self):
        parameters = {"solver": "mm", "n_init": 3, "consensus": True, "random_state": 0}
        one, two = (fit(X, 4, "poisson", n_jobs=n, **parameters) for n in (1, 2))
        np.testing.assert_array_equal(one.consensus.stability, two.consensus.stability)
        np.testing.assert_array_equal(one.model.full(), two.model.full())

    def test_sparse_data(self):
        events, _ = datasets.events((40, 30, 20), 3, n_events=20000, random_state=1)
        found = fit(events, 3, "poisson", n_init=3, random_state=0).consensus
        assert found.n_starts == 3
        assert found.stability.min() > 0.95

    def test_rows_that_nobody_observed_say_nothing(self):
        holed = X.astype(float)
        holed[3] = np.nan
        found = fit(holed, 3, "poisson", n_init=3, consensus=True, random_state=1, solver="mm")
        assert found.consensus.stability.min() > 0.95

    def test_one_start_has_nothing_to_be_compared_with(self):
        assert SmartCPD(3, "poisson", random_state=0).fit(X).consensus_ is None
        with pytest.raises(IncompatibleError, match="n_init=1 is a single one"):
            fit(X, 3, "poisson", consensus=True)

    def test_starts_that_a_callback_ended_do_not_count(self):
        seen = []

        def stop(report):
            seen.append(report)
            return len(seen) > 10

        result = fit(X, 3, "poisson", solver="mm", n_init=3, consensus=True, callback=stop)
        assert result.consensus is None

    def test_it_is_there_after_a_fit_was_resumed(self, tmp_path):
        parameters = {"n_init": 3, "consensus": True, "random_state": 0, "solver": "mm"}
        whole = fit(X, 4, "poisson", **parameters).consensus
        seen = []

        def stop(report):
            seen.append(report)
            return len(seen) > 60

        where = {"checkpoint": tmp_path, "checkpoint_every": 0}
        fit(X, 4, "poisson", **parameters, **where, callback=stop)
        resumed = fit(X, 4, "poisson", **parameters, **where, resume=True).consensus
        assert str(resumed) == str(whole)
        np.testing.assert_array_equal(resumed.model.full(), whole.model.full())

    def test_a_search_of_its_own_is_compared_after_a_resumption(self, tmp_path):
        parameters = {"n_init": 4, "random_state": 0, "checkpoint": tmp_path}
        whole = fit(X, 4, "poisson", **parameters).consensus
        again = fit(X, 4, "poisson", **parameters, resume=True).consensus
        assert str(again) == str(whole)


class TestKept:
    STABILITY = Stability((0.9, 0.2, 1.0, 0.5), (4, 1, 5, 3), 5, 2)

    def run(self):
        history = History([Record(0.1, 1, 10, 2.0, 0.0, "a")])
        status = Status(True, "Converged.")
        return RunRecord(MODEL, 1.5, history, status, "mm", stability=self.STABILITY)

    def test_in_the_folder_of_a_run(self, tmp_path):
        RunFolder(tmp_path).save_model(self.run())
        assert RunFolder(tmp_path).load().stability == self.STABILITY

    def test_runs_of_before_have_none(self, tmp_path):
        folder = RunFolder(tmp_path)
        run = self.run()
        kept = run.to_dict()
        del kept["stability"]
        persistence.save(run.model, folder.model, kept)
        assert folder.load().stability is None

    def test_on_the_card_of_each_component(self, tmp_path):
        page = write_report(tmp_path / "a.html", MODEL, stability=self.STABILITY).read_text()
        assert page.count("Found in 1 of 5 starts, stability 0.20.") == 1
        assert page.count('class="small unsure"') == 1
        agreed = build(MODEL, 1.0, [(MODEL, 1.0)])
        page = write_report(tmp_path / "b.html", MODEL, stability=agreed).read_text()
        assert page.count("Found in 2 of 2 starts, stability 1.00.") == 4

    def test_of_another_model_is_refused(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="2 components"):
            write_report(tmp_path / "a.html", MODEL, stability=Stability((1, 1), (2, 2), 2))

    def test_in_another_order(self):
        assert self.STABILITY.ordered([2, 0, 1, 3]).found == (5, 4, 1, 3)


@pytest.mark.usefixtures("elsewhere")
class TestCommandLine:
    @pytest.fixture(autouse=True)
    def table(self, elsewhere):
        rng = np.random.default_rng(0)
        with open("events.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["a", "b", "c"])
            for block in range(2):
                drawn = rng.integers(0, 6, (800, 3)) + 6 * block
                rows.writerows([f"v{value}" for value in row] for row in drawn)

    def fit(self, run, *more):
        return run("fit", "events.csv", "--modes", "a,b,c", "--rank", 2, *more)

    def test_stability_beside_each_component(self, run):
        code, out, _ = self.fit(run, "--n-init", 3, "--consensus")
        assert code == 0
        assert out.count("found in 3 of 3 starts, stability 1.00") == 2
        code, out, _ = run("show", "events-smartcpd", "--json")
        shown = json.loads(out)
        assert [c["found"] for c in shown["components"]] == [3, 3]
        assert "--n-init 3 --consensus" in shown["command"]

    def test_without_it_the_note_says_how(self, run):
        _, out, _ = self.fit(run, "--n-init", 2, "--max-time", 0.01)
        assert "--consensus runs all of them" in out

    def test_it_needs_starts(self, run):
        code, _, err = self.fit(run, "--consensus")
        assert code == 2
        assert "--n-init 5" in err
