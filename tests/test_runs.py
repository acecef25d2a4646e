"""A run comes back from its folder as it was, and a folder is never overwritten by accident."""

import csv
import json
import os

import numpy as np
import pytest

from smartcpd import CPModel, Mode
from smartcpd._app.run_folder import RunFolder, RunRecord
from smartcpd._app.run_folder.cells import read_cells
from smartcpd._app.run_folder.factors import file_names
from smartcpd._problem.history import History, Record, Status
from smartcpd.errors import InvalidDataError, InvalidParameterError, ModelNotFoundError
from smartcpd.quality import measure

MODES = (
    Mode("day/time", np.array(["2024-01-01", "2024-01-08", "2024-01-15"], "M8")),
    Mode("who", ["=1+1", "<script>", "ünï,\n'x'", "(other)"]),
)
rng = np.random.default_rng(0)
MODEL = CPModel([rng.random((3, 2)), rng.random((4, 2))], loss_function="poisson", modes=MODES)
X = rng.poisson(MODEL.full())


@pytest.fixture
def run():
    return RunRecord(
        MODEL,
        1.5,
        History([Record(0.1, 1, 10, 2.0, 0.0, "a"), Record(0.2, 2, 20, float("nan"), 0.0, "b")]),
        Status(True, "Converged."),
        "sparse",
        settings={"rank": 2, "loss": "poisson", "bins": {"day": "1w"}, "x": np.float64(1.0)},
        data={"file": "x.csv"},
        quality=measure(MODEL, X),
        notes=("3 rows are left out.",),
        command="smartcpd fit x.csv",
        title="x",
    )


def saved(path, run):
    folder = RunFolder(path)
    folder.save_model(run)
    assert folder.finish(run) == folder.report
    return folder


def test_round_trip(run, tmp_path):
    folder = saved(tmp_path / "a" / "run", run)
    back = folder.load()
    assert back.model.modes == MODES
    assert all(map(np.array_equal, back.model.factors, MODEL.factors))
    assert back.history[0] == run.history[0]
    assert np.isnan(back.history[1].loss)
    assert back.quality == run.quality
    for name in ("loss", "status", "solver", "notes", "command", "title", "versions", "created"):
        assert getattr(back, name) == getattr(run, name)
    assert back.settings == {"rank": 2, "loss": "poisson", "bins": {"day": "1w"}, "x": 1.0}
    assert CPModel.load(folder.model).modes == MODES


def test_json_is_strict(run, tmp_path):
    folder = saved(tmp_path, run)

    def refuse(name):
        raise AssertionError(name)

    json.loads(folder.header.read_text(), parse_constant=refuse)


def test_factors_as_tables(run, tmp_path):
    folder = saved(tmp_path, run)
    files = sorted(path.name for path in folder.factors.iterdir())
    assert files == ["day_time.csv", "who.csv"]
    with open(folder.factors / "who.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["who", "component 1", "component 2"]
    # What a spreadsheet would run is quoted; the rest is as it was.
    assert [row[0] for row in rows] == ["'=1+1", "<script>", "ünï,\n'x'", "(other)"]
    assert np.array_equal([[float(x) for x in row[1:]] for row in rows], MODEL.factors[1])


def test_factors_of_another_run_do_not_stay(run, tmp_path):
    (tmp_path / "factors").mkdir()
    (tmp_path / "factors" / "old.csv").touch()
    saved(tmp_path, run)
    assert not (tmp_path / "factors" / "old.csv").exists()


def test_file_names():
    assert file_names(["a/b", "a\\b", "..", "A_B", "été"]) == [
        "a_b",
        "a_b_",
        "mode 2",
        "A_B__",
        "été",
    ]


class TestClaims:
    def test_a_new_folder(self, tmp_path):
        RunFolder(tmp_path / "x" / "y").claim()
        assert [path.name for path in (tmp_path / "x" / "y").iterdir()] == ["checkpoint"]
        assert list((tmp_path / "x" / "y" / "checkpoint").iterdir()) == []

    def test_a_finished_run(self, run, tmp_path):
        folder = saved(tmp_path, run)
        with pytest.raises(InvalidParameterError, match=r"finished run.*--force"):
            folder.check()
        with pytest.raises(InvalidParameterError, match="nothing to resume"):
            folder.check(resume=True)
        folder.check(force=True)

    def test_an_unfinished_run(self, tmp_path):
        folder = RunFolder(tmp_path)
        folder.checkpoint.mkdir()
        (folder.checkpoint / "checkpoint.json").touch()
        with pytest.raises(InvalidParameterError, match=r"not finished.*--resume"):
            folder.check()
        folder.check(resume=True)
        folder.claim(resume=True)
        assert folder.resumable
        folder.check(force=True)
        folder.claim()
        assert not folder.resumable

    def test_nothing_there(self, tmp_path):
        with pytest.raises(InvalidParameterError, match=r"holds no run.*Leave out --resume"):
            RunFolder(tmp_path).check(resume=True)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written(self, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(InvalidParameterError, match="Cannot write"):
            RunFolder(tmp_path).claim()

    def test_a_file_in_the_way(self, tmp_path):
        (tmp_path / "x").touch()
        with pytest.raises(InvalidParameterError, match="Cannot write"):
            RunFolder(tmp_path / "x").claim()


class TestBadFolders:
    def test_missing(self, tmp_path):
        with pytest.raises(ModelNotFoundError, match="is not a folder"):
            RunFolder(tmp_path / "no").load()
        with pytest.raises(ModelNotFoundError, match=r"no model\.json"):
            RunFolder(tmp_path).load()

    def test_a_model_alone(self, tmp_path):
        """What `CPModel.save` wrote is read, in a folder or by its name; nothing is made up."""
        MODEL.save(tmp_path / "model")
        MODEL.save(tmp_path / "mine")
        for path in (tmp_path, tmp_path / "mine", tmp_path / "mine.npz"):
            found = RunFolder(path).load()
            assert found.model.rank == MODEL.rank
            assert not found.history
            assert "not known" in str(found.status)

    def test_damaged(self, run, tmp_path):
        folder = saved(tmp_path, run)
        text = json.loads(folder.header.read_text())
        del text["run"]["history"]["loss"]
        folder.header.write_text(json.dumps(text))
        with pytest.raises(InvalidDataError, match="damaged or was edited"):
            folder.load()


class TestCells:
    def read(self, tmp_path, text, **how):
        path = tmp_path / "at.csv"
        path.write_text(text)
        return read_cells(str(path), MODES, **how)

    def test_labels_periods_and_the_rest(self, tmp_path):
        cells = self.read(
            tmp_path,
            "day/time,who,n\n2024-01-01,<script>,1\n2024-01-10 12:00:00,nobody,\n"
            "2024-01-22,<script>,2\n2023-12-31,<script>,3\n",
            value="n",
        )
        assert cells.rows.tolist() == [[0, 1], [1, 3], [-1, 1], [-1, 1]]
        assert cells.unknown == 2
        assert np.isnan(cells.values[1])
        assert any("2024-01-22" in example for example in cells.examples)

    def test_the_fitted_column_is_taken_if_it_is_there(self, tmp_path):
        table = "day/time,who,n\n2024-01-01,x,1\n"
        assert self.read(tmp_path, table, fitted="n").values.tolist() == [1.0]
        assert self.read(tmp_path, table, fitted="m").values is None

    def test_values_are_binned_as_in_the_fit(self, tmp_path):
        path = tmp_path / "at.csv"
        path.write_text("time,x\n2024-01-02 13:30:00,15\n2024-01-07 00:00:00,9.5\n,31\n")
        modes = [
            Mode("time@hour", np.arange(24), "cycle"),
            Mode("time@weekday", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], "cycle"),
            Mode("x", ["0 to 10", "10 to 30"], "number"),
        ]
        assert read_cells(str(path), modes).rows.tolist() == [[13, 1, 1], [0, 6, 0], [-1, -1, -1]]
        modes = [Mode("time", np.arange(24), "cycle"), modes[2]]
        cells = read_cells(str(path), modes, bins={"time": "hour"})
        assert cells.rows.tolist() == [[13, 1], [0, 0], [-1, -1]]

    def test_errors(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="no column 'who'"):
            self.read(tmp_path, "day/time,whom\n2024-01-01,x\n")
        with pytest.raises(InvalidDataError, match="no row"):
            self.read(tmp_path, "day/time,who\n")
