"""Odd files, odd terminals and bad moments, as the command line meets them."""

import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import smartcpd
from smartcpd._app.cli.app import COMMANDS
from smartcpd._app.run_folder import RunFolder
from smartcpd._data.tables.sql import explained
from smartcpd._data.tables.wishes import joined, parted
from smartcpd.errors import InvalidDataError

pytestmark = pytest.mark.usefixtures("elsewhere")

PROGRAM = (sys.executable, "-m", "smartcpd")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(smartcpd.__file__).parents[1])}
CITIES = "Zürich,Käse\nGenève,Brot\nZürich,Brot\nBern,Käse\n" * 10


def sizes(folder):
    return {mode.name: len(mode) for mode in RunFolder(folder).load().model.modes}


class TestHelp:
    @pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
    def test_flags_want_no_value(self, command, run):
        code, out, _ = run(*command, "--help")
        assert code == 0
        assert "bool" not in out
        assert "list[" not in out


class TestTables:
    @pytest.mark.parametrize("header", ["ort,was\n", "größe,was\n"])
    def test_western_european_text(self, header, run, tmp_path):
        (tmp_path / "t.csv").write_bytes((header + CITIES).encode("latin-1"))
        column = header.split(",")[0]
        code, out, err = run("fit", "t.csv", "--modes", f"{column},was", "-r", 1)
        assert code == 0, err
        assert "Zürich" in out
        assert "read as Latin-1" in out
        assert "malformed" not in out
        assert "read as Latin-1" in run("check", "t.csv")[1]

    def test_western_european_text_far_down(self, tmp_path):
        (tmp_path / "t.csv").write_bytes(("a,b\n" + "x,y\n" * 30_000 + CITIES).encode("latin-1"))
        found = smartcpd.from_table("t.csv", ["a", "b"])
        assert "Zürich" in found.modes[0].labels
        assert found.tensor.values.sum() == 30_040

    def test_words_parted_by_spaces(self, run, tmp_path):
        (tmp_path / "t.txt").write_text("who whom\n" + "ann bob\nbob cy\ncy ann\n" * 9)
        assert run("fit", "t.txt", "--modes", "who,whom", "-r", 1, "-q")[0] == 0
        assert sizes("t-smartcpd") == {"who": 3, "whom": 3}

    def test_sentences_are_not_parted(self, tmp_path):
        (tmp_path / "t.csv").write_text("a title\none thing\nquite another thing\n")
        assert _columns("t.csv") == ["a title"]

    def test_no_header(self, run, tmp_path):
        (tmp_path / "t.tsv").write_text("ann\tlikes\tbob\nbob\tsees\tcy\ncy\tlikes\tann\n")
        code, out, _ = run("check", "t.tsv")
        assert (code, "if it names columns, say --header" in out) == (0, True)
        found = json.loads(run("check", "t.tsv", "--no-header", "--json")[1])
        assert found["rows"] == 3
        assert found["command"].endswith("--modes column0,column1,column2 --no-header --rank 3")
        modes = ("--modes", "column0,column1,column2")
        code, _, err = run("fit", "t.tsv", *modes, "--no-header", "-r", 1, "-q")
        assert code == 0, err
        assert sizes("t-smartcpd") == {"column0": 3, "column1": 2, "column2": 3}
        assert "--no-header" in RunFolder("t-smartcpd").load().command

    @pytest.mark.parametrize("third", [1, "x"])
    def test_columns_without_names_by_their_numbers(self, third, run, tmp_path):
        """A number that stands in the first line does not make names of it."""
        (tmp_path / "t.txt").write_text(f"ann bob {third}\nbob cy {third}\ncy dan 2\n")
        code, _, err = run("fit", "t.txt", "--modes", "0,1,2", "-r", 1, "-q")
        assert code == 0, err
        assert sizes("t-smartcpd") == {"0": 3, "1": 3, "2": 2}

    def test_days_are_not_compared_with_weeks(self, run, tmp_path):
        days = np.arange("2024-01-01", "2024-03-01", dtype="M8[D]")
        rows = "".join(f"{day},{shop}\n" for day in days for shop in "xyz")
        (tmp_path / "t.csv").write_text("day,shop\n" + rows)
        for step in ("1d", "1w"):
            words = ("--bin", f"day={step}", "-r", 1, "-q", "--out", step)
            assert run("fit", "t.csv", "--modes", "day,shop", *words)[0] == 0
        code, _, err = run("compare", "1d", "1w")
        assert (code, "steps of 1 days in the first run and of 7 in" in err) == (1, True)
        assert run("compare", "1d", "1d")[0] == 0

    def test_a_header_that_is_a_guess(self, run, tmp_path):
        (tmp_path / "t.tsv").write_text("who\twhat\tann\nbob\tsees\tcy\ncy\tlikes\tbob\n")
        assert "if it is data, say --no-header" in run("check", "t.tsv")[1]

    def test_names_with_commas(self, run, tmp_path):
        (tmp_path / "t.csv").write_text('"a, b",c\n' + "x,1\ny,2\nx,2\n" * 5)
        found = json.loads(run("check", "t.csv", "--json")[1])
        assert "--modes '\"a, b\",c'" in found["command"]
        arguments = ("--modes", '"a, b",c', "--top", '"a, b=5"', "-r", 1, "--json", "-q")
        code, out, err = run("fit", "t.csv", *arguments)
        assert code == 0, err
        assert [m["name"] for m in json.loads(out)["modes"]] == ["a, b", "c"]

    @pytest.mark.parametrize("names", [["a"], ["a, b", "c"], ['say "x"', '"y"'], ["", "d"]])
    def test_parts_come_back(self, names):
        assert parted(joined(names)) == names

    def test_labels_of_several_lines_stay_on_one(self, run, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n" + '"x\ny",1\nz,2\n"x\ny",2\n' * 5)
        assert "x y " in run("fit", "t.csv", "--modes", "a,b", "-r", 1)[1]

    def test_errors_name_options(self, run, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\nx,1\ny,2\n")
        code, _, err = run("fit", "t.csv", "--modes", "a,b", "--agg", "mean")
        assert (code, "name it with --value" in err) == (1, True)
        code, _, err = run("fit", "t.csv", "--modes", "a,b", "--where", "q >")
        assert (code, "--where 'q >' is not an SQL condition" in err) == (1, True)

    def test_standard_input(self, run, monkeypatch):
        table = b"who;whom\n" + b"ann;bob\nbob;cy\ncy;ann\n" * 9
        for command in (["check", "-"], ["fit", "-", "--modes", "who,whom", "-r", 1, "-q"]):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table)))
            code, _, err = run(*command)
            assert code == 0, err
        assert sizes("stdin-smartcpd") == {"who": 3, "whom": 3}
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        assert "nothing on standard input" in run("check", "-")[2]

    @pytest.mark.slow
    def test_lost_rows_are_told_on_standard_error(self, tmp_path):
        lines = [f"{'' if i % 20 == 0 else 'abc'[i % 3]},{i % 4}" for i in range(200)]
        (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines]))
        command = [*PROGRAM, "convert", "t.csv", "t.npz", "--modes", "a,b"]
        found = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
        assert found.returncode == 0
        assert "Warning: 10 of 200 rows (5 %) cannot be used" in found.stderr
        lines = [f"{'' if i % 3 == 0 else 'abcd'[i % 4]},{i % 4}" for i in range(200)]
        (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines]))
        found = subprocess.run(
            [*command, "--force"], env=ENVIRONMENT, capture_output=True, text=True
        )
        assert found.returncode == 1
        assert "67 of 200 rows (34 %) cannot be used" in found.stderr
        assert (
            "--na, --delimiter), or go on without these rows by --allow-lost-rows." in found.stderr
        )
        command += ["--force", "--allow-lost-rows"]
        assert subprocess.run(command, env=ENVIRONMENT, capture_output=True).returncode == 0

    def test_cells_to_predict_are_written_as_the_table_was(self, run, tmp_path):
        days = [f"{d:02d}/0{m}/2020" for m in (1, 2) for d in range(1, 11)]
        rows = "".join(
            f"{day};{shop};1.{n:03d},5\n" for day in days for n, shop in enumerate("xyz")
        )
        (tmp_path / "t.csv").write_text("day;shop;value\n" + rows)
        command = ("fit", "t.csv", "--modes", "day,shop", "--value", "value", "-r", 1, "-q")
        code, _, err = run(*command)
        assert (code, "--date-format 'day-first' or" in err) == (1, True)
        assert run(*command, "--date-format", "day-first")[0] == 0
        (tmp_path / "c.csv").write_text("day;shop;value\n05/02/2020;y;1.002,5\n")
        code, out, err = run("predict", "t-smartcpd", "--at", "c.csv")
        assert code == 0, err
        assert out.splitlines()[1].startswith("2020-02-05,y,1002.5,")

    def test_cells_to_predict_have_the_order_of_day_and_month_that_was_found(self, run, tmp_path):
        rows = "".join(f"0{m}/{d}/2020,{s}\n" for m in (3, 4) for d in range(10, 16) for s in "xy")
        (tmp_path / "t.csv").write_text("day,shop\n" + rows)
        assert run("fit", "t.csv", "--modes", "day,shop", "-r", 1, "-q")[0] == 0
        (tmp_path / "c.csv").write_text("day,shop,n\n03/12/2020,x,1\n03/12/2020,x,3\n")
        code, out, err = run("predict", "t-smartcpd", "--at", "c.csv", "--value", "n")
        assert (code, out.splitlines()[1].startswith("2020-03-12,x,1.0,")) == (0, True), (
            out,
            err,
        )
        assert "2 rows fall into 1 cell, and each row is taken as a whole cell" in err

    def test_an_interrupted_query(self):
        with pytest.raises(KeyboardInterrupt), explained("Reading"):
            raise RuntimeError("Query interrupted")
        with pytest.raises(InvalidDataError, match=r"failed.*damaged"), explained("Reading"):
            raise RuntimeError("nanobind::str(): conversion failed")


def _columns(path):
    from smartcpd._data.tables.opening import opened

    with opened(path, None) as source:
        return list(source.columns)


class TestTensors:
    def test_amounts_under_a_loss_for_counts(self, run):
        np.save("X.npy", np.random.default_rng(0).gamma(2.0, 1.0, (6, 5, 4)))
        code, out, _ = run("fit", "X.npy", "--loss", "poisson", "-r", 1)
        assert code == 0
        assert "1 component\n" in out
        assert "fitted by their Kullback-Leibler divergence" in out

    def test_another_member_of_an_archive(self):
        np.savez("X.npz", A=np.ones((2, 3)), B=np.ones((2, 3)))
        with pytest.raises(InvalidDataError, match=r"A \(2x3\), B \(2x3\)"):
            smartcpd.read("X.npz::C")

    def test_complex_numbers_in_hdf5(self):
        h5py = pytest.importorskip("h5py")
        with h5py.File("X.h5", "w") as file:
            file["X"] = np.ones((2, 3), complex)
        with pytest.raises(InvalidDataError, match="complex numbers"):
            smartcpd.read("X.h5")

    def test_check_says_that_there_are_nans(self, run):
        np.save("X.npy", np.array([[1.0, np.nan], [2.0, 3.0]]))
        code, out, _ = run("check", "X.npy")
        assert (code, "1 cell is missing" in out) == (0, True)
        assert "from nan" not in out

    def test_runs_of_different_ranks(self, run):
        np.save("X.npy", np.random.default_rng(0).poisson(3.0, (6, 5, 4)))
        for rank in (1, 3):
            assert run("fit", "X.npy", "-r", rank, "-q", "--out", f"rank{rank}")[0] == 0
        code, _, err = run("compare", "rank1", "rank3")
        assert code == 0
        assert "2 of the 3 components of the second run have no counterpart" in err


class TestBadMoments:
    @pytest.fixture
    def counts(self):
        np.save("X.npy", np.random.default_rng(0).poisson(3.0, (6, 5, 4)))
        return ("fit", "X.npy", "-r", "2", "-q")

    def test_interrupted_while_the_report_is_written(self, counts, run, monkeypatch):
        def interrupted(*args):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("smartcpd._inference.examination.Examination.figures", interrupted)
            code, _, err = run(*counts)
        assert code == 130
        assert "'smartcpd report X-smartcpd' writes its report" in err
        assert RunFolder("X-smartcpd").load().quality is None
        assert run("report", "X-smartcpd")[0] == 0
        assert run(*counts, "--resume")[0] == 0
        assert RunFolder("X-smartcpd").load().quality is not None

    def test_interrupted_in_the_middle_of_several_starts(self):
        X, _ = smartcpd.datasets.count((20, 20, 20), rank=3, random_state=0)
        epochs = [0]

        def interrupt_the_second(report):
            epochs.append(report.record.epoch)
            if epochs[-1] < epochs[-2]:
                raise KeyboardInterrupt

        found = smartcpd._fitting.fit.fit(
            X, 3, "poisson", solver="smd", n_init=6, random_state=0, callback=interrupt_the_second
        )
        assert found.status.interrupted

    def test_disk_that_is_full_before(self, counts, run, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 1000))
        code, _, err = run(*counts)
        assert code == 1
        assert "the disk has 0.001 MB left. Make room" in err
        assert not os.path.exists("X-smartcpd")

    def test_disk_that_is_full_after(self, counts, run, monkeypatch):
        def full(self, run):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(RunFolder, "finish", full)
            code, _, err = run(*counts)
        assert code == 1
        assert "make room, and go on with --resume" in err
        assert run(*counts, "--resume")[0] == 0

    def test_what_nobody_thought_of(self, counts, run, monkeypatch):
        def broken(*args, **kwargs):
            raise ZeroDivisionError("division by zero")

        monkeypatch.setattr("smartcpd._fitting.fit.fit", broken)
        code, _, err = run(*counts)
        assert code == 1
        assert err.splitlines() == [
            "error: Something went wrong that should not have (ZeroDivisionError: division by "
            "zero); --debug shows where."
        ]

    @pytest.mark.slow
    def test_a_terminal_without_unicode(self):
        Path("t.csv").write_text("a,b\n" + "😀,Zürich\nx,y\n😀,y\n" * 5, encoding="utf-8")
        done = subprocess.run(
            [*PROGRAM, "fit", "t.csv", "--modes", "a,b", "-r", "1"],
            capture_output=True,
            env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert b"Z?rich" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_run_ends_as_if_it_never_was():
    X, _ = smartcpd.datasets.count((50, 50, 50), rank=6, random_state=0)
    np.save("X.npy", X)
    words = [*PROGRAM, "fit", "X.npy", "-r", "6", "--solver", "smd", "-q"]
    words += ["--checkpoint-every", "0.05"]
    subprocess.run([*words, "--out", "whole"], env=ENVIRONMENT, check=True, timeout=200)
    broken, chance = RunFolder("broken"), random.Random(0)
    for _ in range(2):
        more = ["--resume"] if broken.resumable else []
        life = subprocess.Popen([*words, "--out", "broken", *more], env=ENVIRONMENT)
        try:
            life.wait(1.2 + chance.random())
            break
        except subprocess.TimeoutExpired:
            life.kill()
            life.wait()
    if not broken.header.exists():
        more = ["--resume"] if broken.resumable else []
        subprocess.run([*words, "--out", "broken", *more], env=ENVIRONMENT, check=True, timeout=200)
    factors = [RunFolder(name).load().model.factors for name in ("whole", "broken")]
    assert all(map(np.array_equal, *factors))
