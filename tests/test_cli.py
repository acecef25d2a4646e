"""The program as a user meets it: results on stdout, the rest on stderr, codes, one sentence."""

import ast
import gzip
import html
import importlib
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import smartcpd
from smartcpd import SparseTensor
from smartcpd._app.cli import main
from smartcpd._app.cli.app import COMMANDS
from smartcpd._app.cli.options import in_flags
from smartcpd._app.run_folder import RunFolder
from smartcpd._inference import diagnosis

pytestmark = pytest.mark.usefixtures("elsewhere")

MODES = "date,area,kind"


def table(n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    night = rng.random(n_rows) < 0.5
    hour = np.where(night, rng.integers(0, 5, n_rows), rng.integers(9, 18, n_rows))
    kind = np.where(night, "theft", np.where(rng.random(n_rows) < 0.5, "fraud", "noise"))
    area = np.where(night, rng.integers(1, 4, n_rows), rng.integers(3, 9, n_rows))
    days = rng.integers(1, 29, n_rows)
    amount = rng.gamma(2.0, 1.0, n_rows).round(3)
    rows = zip(days, hour, area, kind, amount, strict=True)
    lines = [f"2024-01-{d:02},{h},{a},{k},{x}" for d, h, a, k, x in rows]
    return "\n".join(["date,hour,area,kind,amount", *lines]) + "\n"


@pytest.fixture
def events(tmp_path):
    (tmp_path / "events.csv").write_text(table())
    return "events.csv"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A run made once, by a process of its own, as a user would."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "events.csv").write_text(table())
    done = program("fit", "events.csv", "--modes", MODES, "-r", 2, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "events-smartcpd", done


PROGRAM = (sys.executable, "-m", "smartcpd")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(smartcpd.__file__).parents[1])}


def program(*arguments, env=None, **how):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT | (env or {}),
        **how,
    )


class TestFit:
    def test_from_a_table_to_a_folder(self, fitted):
        folder, done = fitted
        assert done.stdout.splitlines()[-1] == "Report: events-smartcpd/report.html"
        assert "Loss poisson, because" in done.stdout
        assert "theft" in done.stdout
        assert "Fitting 28 x 8 x 3" in done.stderr
        assert "Fitting" not in done.stdout
        assert sorted(p.name for p in folder.iterdir()) == [
            "factors",
            "model.json",
            "model.npz",
            "report.html",
        ]
        model = RunFolder(folder).load().model
        assert [m.name for m in model.modes] == MODES.split(",")
        assert {model.top(r, "kind", 1)[0][0] for r in range(2)} >= {"theft"}

    def test_it_can_be_repeated(self, fitted, events, run):
        code, out, _ = run("fit", events, "--modes", MODES, "-r", 2, "-q", "--out", "again")
        assert (code, out) == (0, "again/report.html\n")
        before, now = RunFolder(fitted[0]).load(), RunFolder("again").load()
        assert all(map(np.array_equal, before.model.factors, now.model.factors))
        assert now.data["fingerprint"] == before.data["fingerprint"]
        assert now.command == f"smartcpd fit events.csv --modes {MODES} --rank 2"

    def test_json(self, events, run):
        code, out, _ = run("fit", events, "--modes", "date,kind", "-r", 2, "--json", "-q")
        found = json.loads(out)
        assert code == 0
        assert found["loss"] == "poisson"
        assert sum(c["share"] for c in found["components"]) == pytest.approx(1.0)
        assert len(found["components"][0]["top"]["kind"]) == 3

    def test_options_of_tables(self, events, run):
        code, out, err = run(
            "fit", events, "--modes", "date,area,kind", "--value", "amount", "--bin", "date=1w",
            "--top", "area=3", "--rest", "drop", "--where", "hour < 12", "-r", 1, "--json",
        )  # fmt: skip
        assert code == 0, err
        found = json.loads(out)
        assert [m["size"] for m in found["modes"]] == [4, 3, 3]
        assert any("left out" in note for note in found["notes"])
        assert "--bin date=1w --top area=3 --rest drop --where 'hour < 12'" in found["command"]

    def test_a_tensor_under_a_loss_of_the_users(self, run):
        X, _ = smartcpd.datasets.count((10, 8, 6), rank=2, random_state=0)
        np.save("X.npy", X)
        code, out, err = run("fit", "X.npy", "-r", 2, "--loss", "gaussian", "--seed", 3)
        assert code == 0, err
        assert "Loss gaussian, as you chose." in out
        assert RunFolder("X-smartcpd").load().dispersion > 0

    def test_a_folder_that_is_taken(self, events, fitted, run):
        arguments = ("fit", events, "--modes", MODES, "-r", 2, "--out", fitted[0])
        code, _, err = run(*arguments)
        assert code == 1
        assert "holds a finished run" in err
        code, _, err = run(*arguments, "--resume")
        assert (code, "nothing to resume" in err) == (1, True)

    def test_resume_in_the_wrong_folder(self, events, run):
        code, _, err = run("fit", events, "--modes", MODES, "-r", 2, "--resume", "--out", "no")
        assert code == 1
        assert "no holds no run, so there is nothing to resume" in err
        assert not os.path.exists("no")

    def test_resume_of_another_fit(self, events, run, monkeypatch):
        from smartcpd._fitting import fit as fitting

        real = fitting.fit

        def stopped(*args, **kwargs):
            real(*args, **kwargs)
            raise KeyboardInterrupt

        arguments = ("fit", events, "--modes", MODES, "-q")
        with monkeypatch.context() as patched:
            patched.setattr(fitting, "fit", stopped)
            code, _, err = run(*arguments, "-r", 2)
        assert (code, err) == (130, "Interrupted; --resume goes on from the last checkpoint.\n")
        code, _, err = run(*arguments, "-r", 2)
        assert (code, "is not finished. Go on with --resume" in err) == (1, True)
        code, _, err = run(*arguments, "-r", 3, "--resume")
        assert (code, "rank was 2 and is 3" in err) == (1, True)
        assert run(*arguments, "-r", 2, "--resume")[0] == 0
        assert not RunFolder("events-smartcpd").resumable


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_fit_keeps_what_it_found(tmp_path):
    X, _ = smartcpd.datasets.count((60, 60, 60), rank=10, random_state=0)
    np.save(tmp_path / "X.npy", X)
    waiting = subprocess.Popen(
        [*PROGRAM, "fit", "X.npy", "-r", "10", "--solver", "smd", "--n-init", "50",
         "--checkpoint-every", "0.01"],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    checkpoints = tmp_path / "X-smartcpd" / "checkpoint"
    until = time.monotonic() + 120
    while not any(checkpoints.glob("*.checkpoint")) and time.monotonic() < until:
        time.sleep(0.1)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=120)
    assert waiting.returncode == 130, err
    if "Interrupted; --resume goes on from the last checkpoint." in err:
        return  # it came between two starts, where there is no model to save
    assert "Interrupted: the model found so far is in X-smartcpd. Go on with --resume." in err
    assert out.splitlines()[-1] == "Report: X-smartcpd/report.html"
    assert RunFolder(tmp_path / "X-smartcpd").load().status.interrupted


class TestOpenRankAndNames:
    def test_a_rank_that_is_found(self, run):
        X, _ = smartcpd.datasets.count((8, 7, 6), rank=1, a_max=2.0, random_state=0)
        np.save("X.npy", X)
        code, out, _ = run("fit", "X.npy", "--rank", "auto", "-q", "--name", "mode 0=user",
                           "--name", "1=everyone")  # fmt: skip
        assert (code, out) == (0, "X-smartcpd/report.html\n")
        found = RunFolder("X-smartcpd").load()
        assert found.selection["rank"] == found.model.rank
        assert found.model.named_modes[0].name == "user"
        assert "--rank auto" in found.command
        page = RunFolder("X-smartcpd").report.read_text()
        assert "Which rank" in page
        assert "everyone" in page
        code = page.split("import smartcpd")[1].split("</code>")[0]
        names = {}
        exec("import smartcpd" + html.unescape(code), names)
        assert np.array_equal(names["estimator"].model_.rank, found.model.rank)

    @pytest.mark.parametrize("rank", ["ten", "0", "-1", "2.5"])
    def test_another_word(self, rank, run):
        np.save("X.npy", np.ones((3, 3)))
        code, _, err = run("fit", "X.npy", f"--rank={rank}")
        assert (code, "nor the word 'auto'" in " ".join(err.split())) == (2, True)

    @pytest.mark.parametrize(
        ("name", "words"), [("x=1", "no mode 'x'"), ("9=a", "from 1 to 2"), ("a", "WHAT=NAME")]
    )
    def test_names_that_fit_nothing(self, name, words, run):
        np.save("X.npy", np.ones((3, 3)))
        code, _, err = run("fit", "X.npy", "-r", 2, "--name", name)
        assert (code > 0, words in " ".join(err.split())) == (True, True)

    def test_a_run_may_be_named_later(self, run):
        np.save("X.npy", np.random.default_rng(0).poisson(2, (4, 3)))
        run("fit", "X.npy", "-r", 2, "-q", "--name", "1=mornings")
        code, out, _ = run("report", "X-smartcpd", "--name", "2=nights")
        assert (code, out) == (0, "X-smartcpd/report.html\n")
        assert RunFolder("X-smartcpd").load().names == {1: "mornings", 2: "nights"}
        assert "nights" in RunFolder("X-smartcpd").report.read_text()
        assert "nights" in run("show", "X-smartcpd")[1]

    def test_later_names_that_fit_nothing(self, run):
        np.save("X.npy", np.arange(9.0).reshape(3, 3))
        run("fit", "X.npy", "-r", 2, "-q", "--loss", "gaussian")
        for name, words in (("3=a", "from 1 to 2"), ("x=a", "'x' is not")):
            code, _, err = run("report", "X-smartcpd", "--name", name)
            assert (code > 0, words in err) == (True, True)

    def test_cells_by_the_names_that_columns_had(self, run, tmp_path):
        (tmp_path / "edges.txt").write_text("amy bob 1\nbob amy 1\namy eva 2\nbob eva 2\n")
        run("fit", "edges.txt", "--modes", "column0,column1,column2", "-r", 1, "-q",
            "--name", "column0=sender", "--name", "column2=week")  # fmt: skip
        code, out, err = run("predict", "edges-smartcpd", "--at", "edges.txt")
        assert code == 0, err
        assert out.startswith("sender,column1,week,mean\namy,bob,1,")
        (tmp_path / "cells.csv").write_text("sender,column1,week\namy,bob,1\n")
        named = run("predict", "edges-smartcpd", "--at", "cells.csv")[1]
        assert named.splitlines()[1] == out.splitlines()[1]

    def test_zeros_under_gamma(self, run):
        np.save("X.npy", np.array([[0.0, 1.5], [2.0, 3.0]]))
        code, _, err = run("fit", "X.npy", "-r", 1, "--loss", "gamma")
        assert (code, "has zeros" in err) == (1, True)


class TestOtherCommands:
    @pytest.mark.slow
    def test_warm_up(self, run):
        code, out, err = run("warm-up")
        assert code == 0
        assert "Compiled code is in" in out
        assert "poisson, dense with missing cells" in err

    def test_show(self, fitted, run):
        code, out, _ = run("show", fitted[0], "--top", 2)
        assert code == 0
        assert "theft" in out
        assert out.splitlines()[-1].endswith("report.html")
        assert json.loads(run("show", fitted[0], "--json")[1])["rank"] == 2

    def test_report(self, fitted, run):
        RunFolder(fitted[0]).report.unlink()
        code, out, _ = run("report", fitted[0])
        assert (code, out.strip()) == (0, str(RunFolder(fitted[0]).report))
        assert "theft" in RunFolder(fitted[0]).report.read_text()

    def test_predict(self, fitted, run, tmp_path):
        (tmp_path / "at.csv").write_text(
            f"{MODES},n\n2024-01-03,2,theft,900\n2024-01-03,2,theft,15\n2024-01-03,2,arson,1\n"
        )
        code, out, err = run("predict", fitted[0], "--at", "at.csv", "--value", "n")
        head, *rows = [line.split(",") for line in out.splitlines()]
        assert code == 0
        assert head == [*MODES.split(","), "n", "mean", "surprise"]
        assert float(rows[0][5]) < 1e-9
        assert float(rows[1][5]) > 0.01
        assert rows[2][4:] == ["", ""]
        assert "1 of 3 rows have no mean: kind 'arson'" in err
        model = RunFolder(fitted[0]).load().model
        assert float(rows[0][4]) == pytest.approx(float(model.mean([[2, 1, 2]])[0]), rel=1e-4)
        found = json.loads(run("predict", fitted[0], "--at", "at.csv", "--json")[1])
        assert found[2]["mean"] is None
        assert "surprise" not in found[0]

    def test_compare(self, fitted, run):
        code, out, _ = run("compare", fitted[0], fitted[0])
        assert code == 0
        assert "Score: 1.0000" in out
        found = json.loads(run("compare", fitted[0], fitted[0], "--json")[1])
        assert [(p["first"], p["second"]) for p in found["pairs"]] == [(1, 1), (2, 2)]

    def test_compare_with_other_labels_and_other_modes(self, fitted, events, run):
        run("fit", events, "--modes", MODES, "-r", 2, "--where", "area > 2", "-q", "--out", "less")
        code, _, err = run("compare", fitted[0], "less")
        assert code == 0
        assert "Mode 'area': 6 labels are in both runs, of 8 and 6" in err
        run("fit", events, "--modes", "date,kind", "-r", 2, "-q", "--out", "fewer")
        code, _, err = run("compare", fitted[0], "fewer")
        assert (code, "same modes" in err) == (1, True)

    def test_convert(self, events, run):
        code, out, err = run("convert", events, "X.npz", "--modes", MODES)
        assert (code, out) == (0, "X.npz\n")
        code, out, err = run("convert", "X.npz", "X.tns")
        assert (code, "no place for labels" in err) == (0, True)
        assert smartcpd.read("X.tns").values.sum() == 3000
        code, _, err = run("convert", "X.npz", "X.tns")
        assert (code, "exists already" in err) == (1, True)
        assert run("convert", "X.npz", "X.tns", "--force")[0] == 0
        assert run("convert", "X.npz", "X.docx")[0] == 1

    def test_check_a_table(self, events, run):
        code, out, _ = run("check", events)
        assert code == 0
        assert "A table of 3,000 rows" in out
        assert "smartcpd fit events.csv --modes date,hour,area,kind" in out
        assert json.loads(run("check", events, "--json")[1])["rows"] == 3000

    def test_lost_rows_are_told_once(self, tmp_path, run):
        rows = (f"{'abc'[i % 3]},{'xy '[i % 3 if i < 9 else 0].strip()}\n" for i in range(60))
        (tmp_path / "t.csv").write_text("shop,kind\n" + "".join(rows))
        sentence = "3 of 60 rows are left out: 'kind' is missing or empty."
        _, out, err = run("check", "t.csv")
        assert (out.count(sentence), err) == (1, "")
        _, out, err = run("fit", "t.csv", "--modes", "shop,kind", "-r", 1)
        assert err.count("3 of 60 rows") == out.count(sentence) == 1

    def test_check_a_tensor(self, run, tmp_path):
        (tmp_path / "X.tns").write_text("1 1 1 2\n1 1 1 3\n2 4 1 1\n")
        code, out, _ = run("check", "X.tns")
        assert code == 0
        assert "1 duplicate entries" in out
        assert "Suggested loss: poisson" in out
        found = json.loads(run("check", "X.tns", "--json")[1])
        assert found["shape"] == [2, 4, 1]
        assert found["losses"]["poisson"] is None
        assert "zeros" in found["losses"]["gamma"]
        assert any("Mode 2 has one row" in sentence for sentence in found["advice"])

    def test_numbers_without_gaps_are_drawn_and_rounding_is_left_out(self, run):
        peak = np.exp(-((np.arange(30) - 12) ** 2) / 20)
        smartcpd.CPModel([peak[:, None], np.ones((4, 1))]).save("plain")
        assert "most at 12, 0 to 29" in run("show", "plain")[1]
        signed = np.array([[1.0], [-0.5], [1.3e-22], [0.0]])
        smartcpd.CPModel([signed, np.ones((4, 1))]).save("signed")
        assert "0 +1, 1 -0.5\n" in run("show", "signed")[1]

    def test_few_years_are_drawn_and_few_other_numbers_listed(self, run):
        factors = [np.arange(1.0, 9.0)[:, None], np.ones((8, 1))]
        modes = [smartcpd.Mode("year", range(2010, 2018)), smartcpd.Mode("room", range(1, 9))]
        smartcpd.CPModel(factors, modes=modes).save("years")
        out = run("show", "years")[1]
        assert "most at 2017, 2010 to 2017" in out
        assert "room  1 12%, 2 12%" in out

    def test_check_an_array(self, run):
        X = np.ones((3, 4, 5))
        X[0, :2, 0] = np.nan
        np.save("X.npy", X)
        out = run("check", "X.npy")[1]
        assert "2 cells are missing (NaN); a fit leaves them out." in out
        assert "duplicate" not in out
        assert "- To begin with: smartcpd fit X.npy --rank 3\n" in out


class TestBadInput:
    """Everything that users get wrong ends with code 1 and one sentence."""

    def refused(self, run, *arguments):
        code, out, err = run(*arguments)
        lines = [line for line in err.splitlines() if not line.endswith("...")]
        assert code == 1
        assert out == ""
        assert len(lines) == 1, err
        assert lines[0].startswith("error: ")
        assert not [p for p in os.listdir() if p.endswith("-smartcpd")]
        return lines[0]

    def table(self, text, modes="a,b", *more, run):
        with open("t.csv", "w") as file:
            file.write(text)
        return self.refused(run, "fit", "t.csv", "--modes", modes, *more)

    def test_missing_file(self, run):
        assert "no.csv" in self.refused(run, "fit", "no.csv", "--modes", "a,b")
        assert "no.tns does not exist" in self.refused(run, "fit", "no.tns")

    def test_no_modes(self, run, events):
        found = self.refused(run, "fit", events)
        assert "--modes date,hour,area" in found

    def test_unknown_column(self, run):
        assert "no column 'c'" in self.table("a,b\n1,2\n", "a,c", run=run)

    def test_duplicate_column(self, run):
        assert "named twice" in self.table("a,b\n1,2\n", "a,a", run=run)

    def test_empty_table(self, run):
        assert "no row" in self.table("a,b\n", run=run)

    def test_empty_file(self, run):
        assert "t.csv" in self.table("", run=run)

    def test_all_rows_filtered(self, run):
        found = self.table("a,b\nx,y\nz,y\n", "a,b", "--where", "a = 'w'", run=run)
        assert "loosen the condition" in found

    def test_one_label_in_a_mode(self, run):
        found = self.table("a,b,c\nx,1,s\ny,2,s\n", "a,b,c", run=run)
        assert "Mode 'c' has one label only" in found

    @pytest.mark.parametrize("loss", ["auto", "poisson"])
    def test_infinity(self, loss, run):
        X = np.ones((3, 4, 5))
        X[1, 2, 3] = np.inf
        np.save("X.npy", X)
        assert "infinity" in self.refused(run, "fit", "X.npy", "--loss", loss)

    def test_nan_is_missing_and_counted(self, run):
        X = np.ones((3, 4, 5))
        X[1, 2, 3] = np.nan
        np.save("X.npy", X)
        code, out, _ = run("fit", "X.npy", "--rank", "1", "--loss", "poisson")
        assert (code, "1 cell (1.7 %) is missing" in out) == (0, True)

    def test_negative_counts(self, run):
        np.save("X.npy", -np.ones((3, 4, 5)))
        found = self.refused(run, "fit", "X.npy", "--loss", "poisson")
        assert "X[0, 0, 0] is -1.0: loss 'poisson' needs counts" in found

    def test_options_have_dashes(self, run, events):
        words = ("fit", events, "--modes", "date,area", "-r", 1)
        assert "--absent must be 'zero'" in self.refused(run, *words, "--absent", "nothing")
        where = ("--where", "area = 1", "--force")
        assert "leave it out of --modes" in self.refused(run, *words, *where)
        assert (
            in_flags("in common (n_init=5, consensus=True)")
            == "in common (--n-init 5, --consensus)"
        )
        assert in_flags("raise max_time for a closer fit") == "raise --max-time for a closer fit"
        assert in_flags("Use loss='poisson', or absent='unobserved' if nobody looked.") == (
            "Use --loss 'poisson', or --absent missing if nobody looked."
        )

    def test_findings_speak_of_options(self):
        folder = Path(diagnosis.__file__).parent
        sentences = [
            node.value
            for path in folder.glob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        ]
        assert any("n_init=5" in sentence for sentence in sentences)
        for sentence in map(in_flags, sentences):
            assert not re.search(r"\b[a-z_]+=|SparseTensor\(", sentence), sentence

    def test_refunds_of_a_table(self, run, tmp_path):
        rows = (f"{'abc'[i % 3]},{'xy'[i % 2]},{5 - 500 * (i == 7)}\n" for i in range(60))
        (tmp_path / "sales.csv").write_text("shop,kind,paid\n" + "".join(rows))
        words = ("fit", "sales.csv", "--modes", "shop,kind", "--value", "paid", "-r", 1)
        found = self.refused(run, *words, "--loss", "poisson")
        assert "leave rows below zero out with --where 'paid >= 0'" in found
        notes = json.loads(run(*words, "--json")[1])["notes"]
        assert any(note.startswith("1 of 60 values of 'paid' is negative") for note in notes)

    def test_amounts_with_poisson_are_measured_by_divergence(self, run):
        np.save("X.npy", np.random.default_rng(0).gamma(2.0, 1.0, (6, 5, 4)))
        assert run("fit", "X.npy", "--loss", "poisson", "-r", 1, "-q")[0] == 0
        assert RunFolder("X-smartcpd").load().dispersion > 0

    def test_amounts_are_no_yes_or_no(self, run):
        np.save("X.npy", np.full((3, 4, 5), 0.5))
        found = self.refused(run, "fit", "X.npy", "--loss", "bernoulli-odds")
        assert "0 or 1 in every cell" in found

    def test_millions_of_labels(self, run):
        import duckdb

        duckdb.sql("COPY (SELECT range AS a, range % 3 AS b FROM range(1_200_000)) TO 't.parquet'")
        found = self.refused(run, "fit", "t.parquet", "--modes", "a,b")
        assert "'a'" in found
        assert "top" in found

    def test_binary_file_as_a_table(self, run, tmp_path):
        (tmp_path / "t.csv").write_bytes(np.random.default_rng(0).bytes(5000))
        assert "t.csv" in self.refused(run, "fit", "t.csv", "--modes", "a,b")

    def test_truncated_gzip(self, run, tmp_path):
        content = gzip.compress(table().encode())
        (tmp_path / "t.csv.gz").write_bytes(content[: len(content) // 2])
        found = self.refused(run, "fit", "t.csv.gz", "--modes", MODES)
        assert "t.csv.gz" in found

    def test_truncated_archive(self, run, tmp_path):
        np.savez(tmp_path / "X.npz", X=np.ones((9, 9)))
        content = (tmp_path / "X.npz").read_bytes()
        (tmp_path / "X.npz").write_bytes(content[:300])
        assert "truncated or damaged" in self.refused(run, "fit", "X.npz")

    def test_a_hole_in_a_text_file(self, run, tmp_path):
        (tmp_path / "X.tns").write_text("1 1 1 2\n1  1 2\n")
        assert "line 2" in self.refused(run, "fit", "X.tns")

    def test_table_options_for_a_tensor(self, run):
        smartcpd.write("X.tns", SparseTensor([[0, 0], [1, 1]]))
        said = self.refused(run, "fit", "X.tns", "--modes", "a,b")
        assert "--modes is for tables" in said
        assert "--name 'mode 0=a'" in said

    def test_unknown_pieces(self, run, events):
        found = self.refused(run, "fit", events, "--modes", MODES, "--loss", "poison")
        assert "Did you mean 'poisson'?" in found
        assert "Unknown solver" in self.refused(
            run, "fit", events, "--modes", MODES, "--solver", "x"
        )

    def test_folders_that_hold_no_run(self, run):
        for command in (["show", "."], ["report", "."], ["compare", ".", "."]):
            assert "model.json" in self.refused(run, *command)

    def test_control_characters_do_not_reach_the_terminal(self, run):
        found = self.refused(run, "fit", "no\x1b[31m.tns")
        assert "\x1b[31m.tns" not in found

    def test_debug_shows_where(self, run, capsys):
        from smartcpd.errors import SmartCPDError

        with pytest.raises(SmartCPDError):
            main(["show", ".", "--debug"])


class TestManners:
    def test_every_command_has_help_with_an_example(self, run):
        for command in COMMANDS:
            code, out, _ = run(command, "--help")
            assert code == 0
            if command != "paper":
                assert f"smartcpd {command}" in out.partition("Example")[2]

    def test_commands_are_listed_by_what_their_help_says_first(self, run):
        for command, summary in COMMANDS.items():
            function = command.replace("-", "_")
            module = importlib.import_module(f"smartcpd._app.cli.{function}")
            assert summary == inspect.getdoc(getattr(module, function)).partition("\n\n")[0]
            assert f" {command} " in run("--help")[1]

    def test_the_list_of_commands_imports_none_of_them(self):
        code = "import sys; from smartcpd._app.cli.app import app; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        loaded = set(done.stdout.split())
        assert "typer" in loaded
        assert not {"numpy", "numba", "smartcpd._app.cli.fit"} & loaded

    def test_usage_errors(self, run, events):
        for arguments in (
            ["fit"],
            ["fit", events, "--rank", "many"],
            ["fit", events, "--rank", "0"],
            ["fit", events, "--modes", MODES, "--bin", "date"],
            ["fit", events, "--modes", MODES, "--top", "area=few"],
            ["fit", events, "--modes", MODES, "--force", "--resume"],
            ["no-such-command"],
        ):
            assert run(*arguments)[0] == 2, arguments

    def test_version(self, run):
        assert run("--version")[1].startswith("smartcpd ")

    @pytest.mark.slow
    def test_completion_knows_the_registries(self):
        env = {
            "_SMARTCPD_COMPLETE": "complete_bash",
            "COMP_WORDS": "smartcpd fit x --loss po",
            "COMP_CWORD": "4",
        }
        assert program(env=env).stdout.split() == ["poisson", "poisson-log"]

    @pytest.mark.slow
    def test_a_reader_that_goes_away(self, fitted):
        command = f"'{sys.executable}' -m smartcpd show '{fitted[0]}' --top 50 | head -c 1"
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=100, env=ENVIRONMENT
        )
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr
