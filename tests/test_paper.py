"""The paper's experiments: what they write, that they go on where they were, what they refuse."""

import csv
import gzip
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from smartcpd import datasets
from smartcpd._app.cli.app import app
from smartcpd._app.paper import breakdown, claims, figures, lines, page, watching
from smartcpd._app.paper.claimed import CLAIMS
from smartcpd._app.paper.contenders import Budget, Contender, Snapshot, Task
from smartcpd._app.paper.experiment import Options, Panel, Plan
from smartcpd._app.paper.experiments import EXPERIMENTS, common, contours, count, get, real
from smartcpd._app.paper.judging import judged, n_missed
from smartcpd._app.paper.runner import folder_of, run, thinned
from smartcpd._app.paper.runs import RAW, Row, Runs
from smartcpd._app.paper.tables import Table, number, seconds
from smartcpd.errors import (
    DataNotFoundError,
    IncompatibleError,
    InvalidDataError,
    InvalidParameterError,
)

NAMES = ["count", "binary", "continuous", "simplex", "steps", "contours"]
NAMES += ["chicago", "pollinators", "uci", "sensitivity", "ranks", "theory"]
SIZE, RANK = 12, 2
NAN = float("nan")


def tiny_task(seed):
    X, truth = datasets.count((SIZE,) * 3, RANK, random_state=seed)
    start = common.uniform_start(X.shape, RANK, seed, 0.5)
    return Task(X, RANK, "poisson", truth, start=start, seed=seed)


def pretender(name, error, calls):
    """A contender that is told how far from the truth it ends."""

    def solve(task):
        calls.append((name, task.seed))
        rng = np.random.default_rng(task.seed)
        found = []
        for n, size in enumerate((1.0, error)):
            factors = [A + size * rng.random(A.shape) for A in task.truth]
            found.append(Snapshot(0.1 * (n + 1), 100 * (n + 1), n, 0.0, factors))
        return found

    return Contender(name, f"error {error:g}", solve)


UNDECIDED = (
    "Counts: both methods take as long",
    "Chicago: the cost",
    "Pollinators: GCP-OPT and GGN work",
    "Gamma noise: with Jensen",
    "Gamma noise: both stochastic",
    "Zeros and ones: its advantage",
)
"""Claims that a race between SmartCPD and all others does not decide."""


def pretended(panel, name, pace):
    """The rows of a run that is ``pace`` times as slow as it could be, and ends as much worse."""
    for n, error in enumerate((0.5, 0.05, 1e-3)):
        reached = error if pace == 1 else max(error, 0.2)
        loss = 1.0 + reached
        yield Row(panel, 0, name, pace * 10.0**n, pace * 1e5**n, n, loss, reached, 0, int(n == 2))


def none(plan, runs):
    """No figures, which take most of the time."""
    return {}


@pytest.fixture
def tiny(monkeypatch, request):
    """The count experiment with contenders that take no time."""
    calls = []
    racing = tuple(
        pretender(lines.published(name), error, calls)
        for name, error in (("SmartCPD", 0.01), ("GCP-OPT", 0.1), ("GGN", 0.2))
    )

    def plan(options):
        panels = tuple(
            Panel(f"R={rank}", "counts, 12x12x12", tiny_task, racing, Budget(0.5))
            for rank in (10, 20)
        )
        parts = [breakdown.Breakdown.of(name, 1.0, 2.0, 6.0) for name in ("SmartCPD", "GCP-OPT")]
        return Plan(panels, 2, extra=parts)

    monkeypatch.setattr(figures, "DPI", 30)
    drawn = (
        get("count") if request.node.name == "test_files" else replace(get("count"), figures=none)
    )
    experiment = replace(drawn, plan=plan)
    calls_of_trials = lambda: [c for c in calls if c[1] < 1000]  # noqa: E731
    return experiment, calls_of_trials


class TestRunner:
    def test_files(self, tiny, tmp_path):
        experiment, _ = tiny
        outcome = run(experiment, Options(), tmp_path)
        assert outcome.folder == tmp_path / "count"
        names = {path.name for path in outcome.files}
        assert {RAW, "count_10.png", "count_10.svg", "count_mse.csv", "README.md"} <= names
        assert all(path.stat().st_size > 100 for path in outcome.files)
        with gzip.open(tmp_path / "count" / RAW, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 2 * 2 * 3 * 2
        assert set(rows[0]) == set(Row._fields)

    def test_table_has_the_papers_figures(self, tiny, tmp_path):
        experiment, _ = tiny
        run(experiment, Options(), tmp_path)
        text = (tmp_path / "count" / "README.md").read_text()
        for printed in ("2.7e-3", "3.7e-3", "0.028", "6.5e-3"):
            assert printed in text

    def test_goes_on_where_it_was(self, tiny, tmp_path):
        experiment, calls = tiny
        run(experiment, Options(trials=1), tmp_path)
        before = Runs(tmp_path / "count").runs
        assert len(calls()) == 6
        outcome = run(experiment, Options(trials=2), tmp_path)
        assert len(calls()) == 12
        assert {seed for _, seed in calls()[6:]} == {1}
        assert (outcome.old_runs, outcome.new_runs) == (6, 6)
        after = Runs(tmp_path / "count").runs
        for key, found in before.items():
            np.testing.assert_array_equal(after[key].mse, found.mse)
        assert run(experiment, Options(trials=2), tmp_path).new_runs == 0

    def test_an_interrupt_while_writing_loses_nothing(self, tiny, tmp_path, monkeypatch):
        experiment, _ = tiny
        run(experiment, Options(trials=1), tmp_path)

        def interrupt(*paths):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("smartcpd._common.atomic.put_in_place", interrupt)
            with pytest.raises(KeyboardInterrupt):
                run(experiment, Options(trials=2), tmp_path)
        assert run(experiment, Options(trials=2), tmp_path).old_runs == 6

    def test_what_is_read_again_is_what_was_judged(self, tmp_path):
        runs = Runs(tmp_path)
        numbers = 0.0123456789, 1234567.0, 3, 0.98765432, 1 / 3, 2
        runs.add([Row("p", 0, "s", *numbers, 0), Row("p", 0, "s", 1.0, NAN, 4, 0.5, NAN, NAN, 1)])
        for mine, read in zip(
            runs.of("p", "s")[0][3:], Runs(tmp_path).of("p", "s")[0][3:], strict=True
        ):
            np.testing.assert_array_equal(mine, read)
        assert runs.of("p", "s")[0].mse[0] == pytest.approx(1 / 3, rel=1e-3)
        content = (tmp_path / RAW).read_bytes()
        runs.add([Row("p", 0, "s", *numbers, 0), Row("p", 0, "s", 1.0, NAN, 4, 0.5, NAN, NAN, 1)])
        assert (tmp_path / RAW).read_bytes() == content

    def test_thinned_rows_tell_when_errors_are_reached(self):
        times = np.geomspace(0.01, 10.0, 200)
        rows = [
            Row("p", 0, "s", t, 1e6 * t, 0, 0.0, 0.1 / t, 0, int(t == times[-1])) for t in times
        ]
        kept = thinned(rows)
        assert len(kept) < len(rows) / 4
        assert (kept[0], kept[-1]) == (rows[0], rows[-1])
        for aim in (1.0, 0.1):
            assert next(r for r in kept if r.mse <= aim) == next(r for r in rows if r.mse <= aim)

    def test_a_new_solver_joins(self, tiny, tmp_path):
        experiment, _ = tiny
        run(experiment, Options(trials=1), tmp_path)

        def more(options):
            plan = experiment.plan(options)
            extra = pretender("another", 0.3, [])
            return replace(
                plan,
                panels=tuple(replace(p, contenders=(*p.contenders, extra)) for p in plan.panels),
            )

        outcome = run(replace(experiment, plan=more), Options(trials=1), tmp_path)
        assert (outcome.old_runs, outcome.new_runs) == (6, 2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [(Options(seed=3), "seed = 0.* has 3"), (Options(limit=9.0), "R=10 = '0.5 s'")],
    )
    def test_other_settings_are_refused(self, tiny, tmp_path, options, message):
        experiment, calls = tiny
        run(experiment, Options(trials=1), tmp_path)
        n_calls = len(calls())
        with pytest.raises(IncompatibleError, match=message):
            run(experiment, replace(options, trials=1), tmp_path)
        assert len(calls()) == n_calls

    def test_only_some_solvers(self, tiny, tmp_path):
        experiment, calls = tiny
        run(experiment, Options(trials=1, only="GGN"), tmp_path)
        assert {name for name, _ in calls()} == {lines.published("GGN")}
        assert run(experiment, Options(trials=1), tmp_path).new_runs == 4

    def test_quick_runs_are_kept_apart(self, tmp_path):
        experiment = get("count")
        assert folder_of(experiment, Options(quick=True), tmp_path).name == "count-quick"
        assert folder_of(experiment, Options(), tmp_path).name == "count"

    @pytest.mark.parametrize("content", [b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n", mtime=0)])
    def test_a_foreign_file_is_refused(self, tiny, tmp_path, content):
        experiment, _ = tiny
        (tmp_path / "count").mkdir()
        (tmp_path / "count" / RAW).write_bytes(content)
        with pytest.raises(InvalidDataError, match=r"runs.csv.gz is not a file of runs"):
            run(experiment, Options(), tmp_path)


class TestContenders:
    def test_snapshots_of_our_fits(self):
        task = replace(tiny_task(0), budget=Budget(5.0, 100))
        snapshots = lines.smartcpd_published().run(task)
        times = [s.time for s in snapshots]
        assert times == sorted(times)
        assert all(s.factors[0].shape == (SIZE, RANK) for s in snapshots)
        found = judged(task, snapshots[-1])
        assert found.loss == pytest.approx(snapshots[-1].loss, rel=1e-6)
        assert found.mse < 0.5
        assert judged(task, snapshots[0]).loss >= found.loss

    def test_budgets_of_entries(self):
        """A solver that samples ends with the first look at which it has read so many."""
        task = replace(tiny_task(0), budget=Budget(60.0, 30))
        end = lines.smartcpd_published().run(task)[-1]
        an_epoch = 100 * 2 * RANK * SIZE  # of at least 100 iterations
        assert 30 * task.n_cells <= end.entries < 30 * task.n_cells + an_epoch
        assert end.time < 60.0

    def test_published_returns_its_last_factors(self):
        """So it is the same run that a longer budget goes on from."""
        task, looks = tiny_task(0), []
        watch = watching.Watch.__call__

        def look(self, report):
            looks.append(report.model().factors)
            return watch(self, report)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watching.Watch, "__call__", look)
            end = lines.smartcpd_published().run(replace(task, budget=Budget(60.0, 100)))[-1]
        assert all(np.array_equal(A, B) for A, B in zip(end.factors, looks[-1], strict=True))

    def test_published_solvers_share_their_start(self):
        task = tiny_task(0)
        first = [
            line.run(replace(task, budget=Budget(1e-9)))[0]
            for line in (lines.smartcpd_published(), lines.gcp_opt_published())
        ]
        for shot in first:
            for A, B in zip(shot.factors, task.start, strict=True):
                np.testing.assert_allclose(A, B, rtol=1e-6)

    def test_stops_where_the_loss_settles(self):
        task = replace(tiny_task(0), budget=Budget(60.0, 3000))
        end = lines.smartcpd_published(stop=0.05).run(task)[-1]
        assert end.entries < 1000 * task.n_cells

    def test_only_the_wanted_rank_is_kept(self):
        # Begins with more components than the rank.
        found = lines.smartcpd_tuned().run(replace(tiny_task(0), budget=Budget(0.2)))
        assert {s.factors[0].shape for s in found} == {(SIZE, RANK)}

    def test_gcp_samples_as_much_as_smartcpd(self):
        task = tiny_task(0)
        assert task.n_entries == 2 * RANK * SIZE
        assert replace(task, n_fibers=40).n_entries == 40 * SIZE

    def test_an_interrupt_is_no_result(self, monkeypatch):
        task = tiny_task(0)

        def interrupt(self, report):
            raise KeyboardInterrupt

        monkeypatch.setattr(watching.Watch, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            lines.smartcpd_published().run(task)

    def test_missed_components(self):
        rng = np.random.default_rng(0)
        truth = [rng.random((30, 4)) for _ in range(3)]
        shuffled = [A[:, [2, 0, 3, 1]] * 3.0 for A in truth]
        assert n_missed(shuffled, truth) == 0
        other = [A.copy() for A in shuffled]
        for A in other:
            A[:, 1] = A[:, 2]  # one component twice, and so another not at all
        assert n_missed(other, truth) == 1


class TestEveryExperiment:
    def test_names(self):
        assert list(EXPERIMENTS) == NAMES
        with pytest.raises(
            InvalidParameterError, match=r"Unknown experiment 'counts'. Experiments"
        ):
            get("counts")

    @pytest.mark.parametrize("name", ["binary", "continuous", "simplex", "steps"])
    def test_plans_name_the_papers_sizes(self, name, monkeypatch):
        # Without making the large tensors.
        monkeypatch.setattr("smartcpd._app.paper.experiments.binary.ones", lambda task: 15.0)
        small = datasets.binary((4, 4, 4), 2, random_state=0)
        monkeypatch.setattr(datasets, "binary", lambda *a, **k: small)
        plan = get(name).plan(Options())
        size = 300 if name == "continuous" else 100
        assert all(f"{size}x{size}x{size}" in panel.data for panel in plan.panels)
        assert plan.trials == 20

    def test_contours(self, tmp_path):
        outcome = run(get("contours"), Options(), tmp_path)
        assert {"contours.png", "contours.svg", "contours.csv"} <= {p.name for p in outcome.files}

    def test_bounds_are_bounds(self):
        """Each surrogate lies above the loss everywhere and touches it at the point."""
        axis = np.linspace(contours.LOW, contours.HIGH, 60)
        a, b = np.meshgrid(axis, axis)
        for map_ in contours.MAPS:
            assert (contours.bound(map_, a, b) >= contours.loss(a, b) - 1e-9).all()
            at = np.array(contours.AT)
            assert contours.bound(map_, at, at) == pytest.approx(contours.loss(at, at))

    def test_breakdown(self):
        for found in breakdown.measured(tiny_task(0).X, RANK, 1):
            assert set(found.parts) == {"sampling", "gradient", "update"}
            assert found.parts["sampling"] > 0
            assert found.parts["update"] > 0
            assert found.total == pytest.approx(sum(found.parts.values()))


class TestRealData:
    @pytest.fixture
    def nothing(self, monkeypatch, tmp_path):
        monkeypatch.setenv("SMARTCPD_DATA", str(tmp_path / "empty"))
        monkeypatch.setattr("smartcpd.datasets.files.DataFile._fetched", _refuse)
        monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache")

    @pytest.mark.parametrize("name", ["chicago", "pollinators", "uci"])
    def test_without_data_it_says_what_to_do(self, nothing, name):
        with pytest.raises(DataNotFoundError, match=r"Download it from http.*--simulate"):
            get(name).plan(Options())

    @pytest.mark.parametrize(
        ("name", "shape"),
        [("pollinators", "562x124x123"), ("uci", "400x400x188"), ("chicago", "334x24x77x31")],
    )
    @pytest.mark.parametrize("options", [Options(quick=True), Options(simulate=True)])
    def test_stand_ins_are_loud(self, nothing, name, shape, options):
        plan = get(name).plan(options)
        assert shape in plan.panels[0].data
        assert "SIMULATED" in plan.panels[0].data
        assert "SIMULATED" in plan.remarks[0]
        assert "SIMULATED" in real._headline(plan.extra)

    def test_times_to_where_a_rival_ends(self, tmp_path):
        runs = Runs(tmp_path)
        for solver, losses in (("SmartCPD", (3.0, 1.0, 0.5)), ("GCP-OPT", (3.0, 2.0, 1.0))):
            runs.add(
                Row("R=5", 0, solver, t + 1.0, 0.0, t, loss, NAN, NAN, int(t == 2))
                for t, loss in enumerate(losses)
            )
        assert real.times_to(runs, "R=5", "SmartCPD", "GCP-OPT").tolist() == [2.0]
        assert real.times_to(runs, "R=5", "GCP-OPT", "GCP-OPT").tolist() == [3.0]


def _refuse(self):
    raise self._missing("there is no network")


class TestClaims:
    def test_from_runs(self, tiny, tmp_path):
        experiment, _ = tiny
        run(experiment, Options(), tmp_path)
        text = page.write(tmp_path)[0].read_text()
        assert "2.7e-3, 3.7e-3, 6.6e-3" in text
        rows = {row[0]: row for row in claims.collected(tmp_path).rows}
        first = rows["Counts: SmartCPD ends below an MSE of 0.01 at R = 10, 20 and 50"]
        assert first[2:4] == ["agrees", "-"]  # nothing tuned has run
        chat = next(row for text, row in rows.items() if text.startswith("UCI chat"))
        assert chat[2:6] == ["-", "-", "not run yet", "not run yet"]

    def test_findings_stay_where_runs_are_not_kept(self, tiny, tmp_path):
        experiment, _ = tiny
        run(experiment, Options(), tmp_path)
        page.write(tmp_path)
        shutil.rmtree(tmp_path / "count")
        for _ in range(2):  # and stay as they are
            page.write(tmp_path)
            rows = {row[0]: row for row in claims.collected(tmp_path).rows}
            found = rows["Counts: SmartCPD ends below an MSE of 0.01 at R = 10, 20 and 50"]
            assert found[2:4] == ["agrees", "-"]
            assert found[4].endswith("[2 trials, runs not kept]")

    def test_every_claim_has_an_experiment_and_marked_reasons(self):
        for claim in CLAIMS:
            assert claim.experiment in EXPERIMENTS
            assert not claim.why or claim.why.startswith(("Measured:", "Conjecture:"))

    @pytest.mark.parametrize("smart_is_better", [True, False])
    def test_verdicts_follow_the_runs(self, smart_is_better, tmp_path):
        """A race that SmartCPD wins by far supports every claim that it does, and one that it loses
        by far supports none.
        """
        fast, slow = (1, 1000) if smart_is_better else (1000, 1)
        solvers = {"SmartCPD": fast, "GCP-OPT": slow, "GGN": slow, "block MD": slow}
        racing = {v(s): pace for s, pace in solvers.items() for v in (lines.published, lines.tuned)}
        racing |= {"SmartCPD, mixed": fast, "SmartCPD, Jensen": fast}
        panels = {"count": ("R=10", "R=20", "R=50"), "binary": ("A_max=0.2", "A_max=0.3")}
        panels |= {"continuous": ("gamma",), "simplex": ("simplex",), "uci": ("R=10",)}
        panels |= {"chicago": ("R=5",), "pollinators": ("R=10",)}
        for experiment, names in panels.items():
            runs = Runs(tmp_path / experiment)
            for panel in names:
                for name, pace in racing.items():
                    runs.add(pretended(panel, name, pace))
            judged_here = [c for c in CLAIMS if c.experiment == experiment]
            for claim in judged_here:
                if claim.text.startswith(UNDECIDED):
                    continue
                for variant in (lines.published, lines.tuned):
                    finding = claim.judge(runs, variant)
                    assert finding is not None, claim.text
                    assert finding.agrees is smart_is_better, (claim.text, finding)

    def test_simulated_data_decides_nothing(self, tmp_path):
        runs = Runs(tmp_path / "uci")
        runs.agree_on({"data": {"R=10": "SIMULATED stand-in"}})
        for solver in ("SmartCPD", "GCP-OPT"):
            name = lines.published(solver)
            runs.add([Row("R=10", 0, name, 1.0, 1.0, 1, 1.0, NAN, NAN, 1)])
        rows = {row[0]: row for row in claims.collected(tmp_path).rows}
        chat = next(row for text, row in rows.items() if text.startswith("UCI chat"))
        assert chat[2] == "cannot be told"
        assert "SIMULATED" in chat[4]

    def test_quick_runs_are_marked(self, tiny, tmp_path):
        experiment, _ = tiny
        run(experiment, Options(quick=True), tmp_path)
        assert "quick run]" in page.write(tmp_path)[0].read_text()

    def test_nothing_to_judge(self, tmp_path):
        with pytest.raises(InvalidDataError, match="holds no runs"):
            page.write(tmp_path)


class TestTables:
    def test_markdown_and_csv(self):
        table = Table("t", "Title", ["a", "b"], [["1", "x|y"]], "note")
        assert table.markdown().splitlines()[2:5] == ["| a | b |", "| --- | --- |", "| 1 | x\\|y |"]
        assert table.csv() == "a,b\n1,x|y\n"

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (0.0027, "2.7e-3"),
            (0.028, "0.028"),
            (float("nan"), "-"),
            (float("inf"), "never"),
            (0, "0"),
        ],
    )
    def test_numbers(self, value, shown):
        assert number(value) == shown

    def test_seconds(self):
        assert seconds(np.array([1.0, 2.0, 3.0])) == "2 s"
        assert seconds(np.array([1.0, 2.0, np.inf])) == "2 s (2 of 3)"
        assert seconds(np.array([np.inf])) == "never (0 of 1)"
        assert seconds(np.array([])) == "-"


class TestFigures:
    def test_labels_never_touch(self):
        placed = figures.spread([0.1, 0.1, 0.11, 0.9, 0.99, 1.0], 0.08)
        assert (np.diff(placed) >= 0.08 - 1e-12).all()
        assert placed[0] >= 0
        assert placed[-1] <= 1 + 1e-12

    def test_mean_keeps_what_ended(self, tmp_path):
        runs = Runs(tmp_path)
        for trial, end in enumerate((1.0, 10.0)):
            runs.add(
                Row("p", trial, "s", t, t, 0, 0.0, mse, 0, int(mse < 1))
                for t, mse in ((0.1, 1.0), (end, 0.01))
            )
        x, y = figures.mean_curve(runs.of("p", "s"), "time")
        assert x[-1] == pytest.approx(10.0)
        assert y[-1] == pytest.approx(0.01)
        assert (np.diff(y) <= 1e-12).all()

    def test_styles_are_different(self):
        lines = [c.name for c in count.racing(Options(quick=True))]
        styles = [figures.style_of(name, n) for n, name in enumerate(lines)]
        assert len(set(styles)) == len(styles)


@pytest.fixture(scope="module")
def cli():
    return CliRunner()


class TestCommand:
    def test_lists(self, cli):
        result = cli.invoke(app, ["paper"])
        assert result.exit_code == 0
        assert all(name in result.output for name in [*NAMES, "claims"])

    def test_runs_one(self, cli, tmp_path):
        result = cli.invoke(app, ["paper", "contours", "--out", str(tmp_path)])
        assert result.exit_code == 0
        assert (tmp_path / "contours" / "contours.png").is_file()
        assert json.loads((tmp_path / "contours" / "settings.json").read_text())["seed"] == 0
        assert "contours.png" in result.output

    def test_unknown(self, cli):
        result = cli.invoke(app, ["paper", "nothing"])
        assert result.exit_code == 1
        assert "'nothing'" in result.output
