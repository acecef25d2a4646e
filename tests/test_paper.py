"""The paper's experiments: what they write, that they go on where they were, what they refuse."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from smartcpd import datasets
from smartcpd._app.cli.app import app
from smartcpd._app.paper import breakdown, claims, figures
from smartcpd._app.paper import contenders as who
from smartcpd._app.paper.contenders import Contender, Snapshot, Task
from smartcpd._app.paper.experiment import Options, Panel, Plan
from smartcpd._app.paper.experiments import EXPERIMENTS, contours, count, get, real
from smartcpd._app.paper.runner import folder_of, judged, run
from smartcpd._app.paper.runs import Row, Runs
from smartcpd._app.paper.tables import Table, number, seconds
from smartcpd.errors import (
    DataNotFoundError,
    IncompatibleError,
    InvalidDataError,
    InvalidParameterError,
)

NAMES = ["count", "binary", "continuous", "simplex", "steps", "contours"]
NAMES += ["chicago", "pollinators", "uci"]
SIZE, RANK = 12, 2


def tiny_task(seed):
    X, truth = datasets.count((SIZE,) * 3, RANK, random_state=seed)
    return Task(X, RANK, "poisson", truth, seed=seed)


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


def none(plan, runs):
    """No figures, which take most of the time."""
    return {}


@pytest.fixture
def tiny(monkeypatch, request):
    """The count experiment with contenders that take no time."""
    calls = []
    lines = tuple(
        pretender(name, error, calls)
        for name, error in (("SmartCPD", 0.01), ("GCP-OPT", 0.1), ("GGN", 0.2))
    )

    def plan(options):
        panels = tuple(
            Panel(f"R={rank}", "counts, 12x12x12", tiny_task, lines) for rank in (10, 20)
        )
        parts = breakdown.measured(tiny_task(0).X, RANK, 5)
        return Plan(panels, 2, 0.5, extra=count.Iterations(parts, 48))

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
        assert {"runs.csv", "count.png", "count.svg", "count_mse.csv", "README.md"} <= names
        assert all(path.stat().st_size > 100 for path in outcome.files)
        with open(tmp_path / "count" / "runs.csv", newline="") as file:
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
        before = (tmp_path / "count" / "runs.csv").read_text()
        assert len(calls()) == 6
        outcome = run(experiment, Options(trials=2), tmp_path)
        assert len(calls()) == 12
        assert {seed for _, seed in calls()[6:]} == {1}
        assert (outcome.old_runs, outcome.new_runs) == (6, 6)
        assert (tmp_path / "count" / "runs.csv").read_text().startswith(before)
        assert run(experiment, Options(trials=2), tmp_path).new_runs == 0

    def test_an_unfinished_run_is_made_again(self, tiny, tmp_path):
        experiment, calls = tiny
        run(experiment, Options(trials=1), tmp_path)
        path = tmp_path / "count" / "runs.csv"
        path.write_text(path.read_text().rstrip("\n")[:-4])  # the last line is cut short
        assert run(experiment, Options(trials=1), tmp_path).new_runs == 1
        assert len(calls()) == 7

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
        [(Options(seed=3), "seed = 0.* has 3"), (Options(limit=9.0), "seconds a solver = 0.5")],
    )
    def test_other_settings_are_refused(self, tiny, tmp_path, options, message):
        experiment, calls = tiny
        run(experiment, Options(trials=1), tmp_path)
        n_calls = len(calls())
        with pytest.raises(IncompatibleError, match=message):
            run(experiment, replace(options, trials=1), tmp_path)
        assert len(calls()) == n_calls

    def test_quick_runs_are_kept_apart(self, tmp_path):
        experiment = get("count")
        assert folder_of(experiment, Options(quick=True), tmp_path).name == "count-quick"
        assert folder_of(experiment, Options(), tmp_path).name == "count"

    def test_a_foreign_file_is_refused(self, tiny, tmp_path):
        experiment, _ = tiny
        (tmp_path / "count").mkdir()
        (tmp_path / "count" / "runs.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InvalidDataError, match=r"runs.csv is not a file of runs"):
            run(experiment, Options(), tmp_path)


class TestContenders:
    def test_snapshots_of_our_fits(self):
        task = replace(tiny_task(0), limit=5.0)
        snapshots = who.smartcpd(max_epochs=20).run(task)
        times = [s.time for s in snapshots]
        assert times == sorted(times)
        assert all(s.factors[0].shape == (SIZE, RANK) for s in snapshots)
        loss, mse = judged(task, snapshots[-1])
        assert loss == pytest.approx(snapshots[-1].loss, rel=1e-6)
        assert mse < 0.5
        assert judged(task, snapshots[0])[0] >= loss

    def test_only_the_wanted_rank_is_kept(self):
        # Begins with more components than the rank.
        found = who.smartcpd_defaults().run(replace(tiny_task(0), limit=0.2))
        assert {s.factors[0].shape for s in found} == {(SIZE, RANK)}

    def test_gcp_samples_as_much_as_smartcpd(self):
        task = tiny_task(0)
        assert task.n_entries == 2 * RANK * SIZE
        assert replace(task, n_fibers=40).n_entries == 40 * SIZE

    def test_an_interrupt_is_no_result(self, monkeypatch):
        task = tiny_task(0)

        def interrupt(self, report):
            raise KeyboardInterrupt

        monkeypatch.setattr(who.Watch, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            who.smartcpd().run(task)


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
        for found in breakdown.measured(tiny_task(0).X, RANK, 20):
            assert set(found.parts) == {"sampling", "gradient", "update"}
            assert all(t > 0 for t in found.parts.values())

    def test_the_two_gradients_of_the_breakdown_descend(self):
        """Both NumPy methods lower the loss, so what is timed is the method."""
        task = tiny_task(0)
        X = task.X.astype(float)
        for make in (breakdown.smartcpd_iteration, breakdown.gcp_iteration):
            rng = np.random.default_rng(0)
            A = [rng.random((SIZE, RANK)) for _ in range(3)]
            before = judged(task, Snapshot(0, 0, 0, 0, [F.copy() for F in A]))[0]
            iterate, clock = make(X, A, 2 * RANK, rng), breakdown._Clock()
            for _ in range(200):
                iterate(clock)
            assert judged(task, Snapshot(0, 0, 0, 0, A))[0] < before


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
                Row("R=5", 0, solver, t + 1.0, 0.0, t, loss, float("nan"), int(t == 2))
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
        path = claims.write(tmp_path)
        text = path.read_text()
        assert "2.7e-3, 3.7e-3, 6.6e-3" in text
        rows = {row[0]: row for row in claims.collected(tmp_path).rows}
        first = rows["SmartCPD ends below an MSE of 0.01 on counts at R = 10, 20 and 50"]
        assert first[3] == "agrees"
        assert rows["SmartCPD is at least 40 times as fast as GCP-OPT on UCI chat"][2:4] == [
            "not run yet",
            "-",
        ]

    def test_quick_runs_are_marked(self, tiny, tmp_path):
        experiment, _ = tiny
        run(experiment, Options(quick=True), tmp_path)
        assert "[quick run]" in claims.write(tmp_path).read_text()

    def test_nothing_to_judge(self, tmp_path):
        with pytest.raises(InvalidDataError, match="holds no runs"):
            claims.write(tmp_path)


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
                Row("p", trial, "s", t, t, 0, 0.0, mse, int(mse < 1))
                for t, mse in ((0.1, 1.0), (end, 0.01))
            )
        x, y = figures.mean_curve(runs.of("p", "s"), "time")
        assert x[-1] == pytest.approx(10.0)
        assert y[-1] == pytest.approx(0.01)
        assert (np.diff(y) <= 1e-12).all()

    def test_styles_are_different(self):
        lines = [c.name for c in get("count").plan(Options(quick=True)).panels[0].contenders]
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
