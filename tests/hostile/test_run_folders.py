"""Nothing of an old run goes before the new one is complete, and any name can be written."""

import csv
from pathlib import Path

import numpy as np
import pytest

from smartcpd import CPModel, Mode
from smartcpd._app.run_folder import RunFolder
from smartcpd._app.run_folder.factors import write_factors
from smartcpd._problem.checkpoints.folder_lock import FolderLock
from smartcpd.errors import CheckpointError

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture
def counts():
    np.save("X.npy", np.random.default_rng(0).poisson(3.0, (6, 5, 4)))
    return ("fit", "X.npy", "-r", "2", "-q")


def content(folder="X-smartcpd"):
    """Every file of a folder, with what it holds."""
    return {path: path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def raising(error):
    def broken(*args, **kwargs):
        raise error

    return broken


class TestForce:
    @pytest.mark.slow
    def test_an_old_run_outlives_one_that_fails(self, counts, run, monkeypatch):
        assert run(*counts)[0] == 0
        before = content()
        for place in (
            "smartcpd._fitting.fit.fit",
            "smartcpd._app.run_folder.folder.write_factors",
            "smartcpd.report.write.write_report",
        ):
            with monkeypatch.context() as patched:
                patched.setattr(place, raising(OSError(28, "No space left on device")))
                assert run(*counts, "--force", "--seed", "1")[0] == 1
            assert {p: b for p, b in content().items() if "checkpoint" not in str(p)} == before
        assert run(*counts, "--force", "--seed", "1")[0] == 0
        assert content().keys() == before.keys()
        assert content() != before

    def test_an_old_checkpoint_outlives_a_new_run_that_fails(self, counts, run, monkeypatch):
        from smartcpd._fitting import fit as fitting

        real = fitting.fit

        def stopped(*args, **kwargs):
            real(*args, **kwargs)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(fitting, "fit", stopped)
            assert run(*counts)[0] == 130
        before = content()
        with monkeypatch.context() as patched:
            patched.setattr(fitting, "fit", raising(MemoryError()))
            assert run(*counts, "--force", "--seed", "1")[0] == 1
        assert content() == before
        assert run(*counts, "--resume")[0] == 0
        assert not RunFolder("X-smartcpd").resumable

    def test_an_interrupted_run_does_not_replace_a_complete_one(self, counts, run, monkeypatch):
        assert run(*counts)[0] == 0
        before = content()
        from smartcpd._fitting import fit as fitting

        real = fitting.fit

        def interrupt(report):
            raise KeyboardInterrupt

        def stopped(*args, **kwargs):
            return real(*args, **kwargs | {"callback": interrupt})

        with monkeypatch.context() as patched:
            patched.setattr(fitting, "fit", stopped)
            code, _, err = run(*counts, "--force", "--solver", "smd")
        assert code == 130
        assert "the run that was in X-smartcpd before is still there" in err
        assert {p: b for p, b in content().items() if "checkpoint" not in str(p)} == before
        assert run(*counts, "--resume", "--solver", "smd")[0] == 0
        assert RunFolder("X-smartcpd").load().solver == "smd"


def test_files_of_others_are_not_replaced(counts, run):
    mine = Path("X-smartcpd/factors/mine.csv")
    mine.parent.mkdir(parents=True)
    mine.write_text("a")
    code, _, err = run(*counts)
    assert code == 1
    assert "holds factors but no run" in err
    assert mine.read_text() == "a"


def test_a_folder_that_another_process_writes_to(counts, run):
    folder = Path("X-smartcpd/checkpoint")
    folder.mkdir(parents=True)
    lock = FolderLock(folder)
    code, _, err = run(*counts)
    assert code == 1
    assert "Another fit (process" in err
    lock.release()
    assert run(*counts)[0] == 0


def test_names_longer_than_file_systems_allow(tmp_path):
    modes = [Mode(letter * 80, ["a", "b"]) for letter in "漢字😀"]
    model = CPModel([np.ones((2, 1))] * 3, modes=modes)
    paths = write_factors(tmp_path / "factors", model)
    assert len({path.name for path in paths}) == 3
    for mode, path in zip(modes, paths, strict=True):
        assert path.read_text(encoding="utf-8").startswith(mode.name)


def test_formulas_in_names_and_labels(tmp_path):
    formula = '=HYPERLINK("http://x","y")'
    model = CPModel([np.ones((3, 1))] * 2, modes=[
        Mode(formula, ["@a", "-1", "b"]), Mode("+x", ["\tc", "-d", "e"]),
    ])  # fmt: skip
    found = []
    for path in write_factors(tmp_path / "factors", model):
        with open(path, newline="", encoding="utf-8") as file:
            found += [row[0] for row in csv.reader(file)]
    assert found == [f"'{formula}", "'@a", "-1", "b", "'+x", "'\tc", "'-d", "e"]


def test_of_two_runs_that_begin_at_once_the_refused_one_removes_nothing(tmp_path, monkeypatch):
    first, second = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run")
    first.claim()
    first.checkpoint.mkdir(exist_ok=True)
    (first.checkpoint / "checkpoint.json").touch()
    # It looks around before the first has made anything.
    monkeypatch.setattr(type(second.checkpoints), "_numbers", lambda self: [])
    with pytest.raises(CheckpointError, match="Another fit has just begun in"):
        second.claim()
    second.abandon()
    assert (tmp_path / "run" / "checkpoint" / "checkpoint.json").exists()
