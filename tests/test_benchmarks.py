"""The runner of the benchmarks: what a case yields is kept, and set in RESULTS.md."""

import json

import numpy as np
import pytest

from benchmarks.harness import Timing
from benchmarks.real_data import NoDataError
from benchmarks.report import write_report
from benchmarks.results import Bars, Lines, Method, Row, Spread, Verdict, shown
from benchmarks.runner import available, run_case, stored
from smartcpd import datasets
from smartcpd._app.paper.peers import sparse_data, start_for


def case():
    """A case that measures nothing.

    Its docstring is shown, too.
    """
    yield Method("numpy", "defaults", 1)
    yield Row("Seconds", {"method": "ours", "s": Spread(0.5, 0.25, 1.0), "same": True})
    yield Row("Seconds", {"method": "theirs", "s": float("inf"), "same": None})
    groups = {
        "small": {"ours": Spread(0.5, 0.25, 1.0), "theirs": float("inf")},
        "large": {"ours": 2.0},
    }
    yield Bars("bars", "A comparison", "seconds", groups)
    series = {"ours": [(1.0, 2.0), (10.0, 1.0)], "theirs": [(1.0, 2.0), (20.0, 1.0)]}
    yield Lines("lines", "On the way", "seconds", "loss", series, log="xy")
    yield Verdict("times faster", 12.0, 10)
    yield Verdict("seconds", float("inf"), 1, at_most=True)
    yield "A remark."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    run_case("fake", case.__doc__, case, folder)
    write_report(folder)
    return folder


def test_results_are_kept(folder):
    kept = json.loads((folder / "results" / "fake.json").read_text())
    assert kept["title"] == "A case that measures nothing."
    assert "numpy" in kept["machine"]
    assert kept["results"][1]["cells"]["s"] == {"median": 0.5, "low": 0.25, "high": 1.0}
    assert len(kept["results"]) == 8
    assert stored(folder)[0].about == "Its docstring is shown, too."


def test_the_report_shows_everything(folder):
    text = (folder / "RESULTS.md").read_text()
    assert "1 of 2 hold." in text
    assert "| ours | 0.500 (0.250-1) | yes |" in text
    assert "| theirs | never |  |" in text
    assert "A remark." in text
    for name in ("bars", "lines"):
        assert f"images/fake_{name}.svg" in text
        assert "<svg" in (folder / "images" / f"fake_{name}.svg").read_text()


def test_a_second_run_replaces_the_first(folder):
    before = (folder / "RESULTS.md").read_text()
    run_case("fake", case.__doc__, case, folder)
    write_report(folder)
    assert (folder / "RESULTS.md").read_text() == before


def test_a_case_without_data_keeps_what_there_was(folder, capsys):
    def nothing():
        raise NoDataError("the data is elsewhere")
        yield

    assert run_case("fake", "Nothing.", nothing, folder) is None
    assert "the data is elsewhere" in capsys.readouterr().out
    assert stored(folder)[0].title == "A case that measures nothing."


def test_ratios_are_those_of_pairs():
    ratio = Spread.ratio(Timing([4.0, 6.0, 8.0]), Timing([2.0, 2.0, 2.0]))
    assert shown({"median": ratio.median, "low": ratio.low, "high": ratio.high}) == "3 (2-4)"


def test_cases_are_found():
    assert {"iteration", "growth", "dense_gaussian", "nyc_taxi"} <= set(available())


@pytest.mark.parametrize("make", [datasets.count, datasets.gamma, datasets.simplex])
def test_starts_of_peers_have_nothing_of_the_truth(make):
    X, truth = make((30, 20, 10), 4, random_state=7)
    start = start_for(sparse_data(X), 4, 7)
    for A, B in zip(start, truth, strict=True):
        assert abs(np.corrcoef(A.ravel(), B.ravel())[0, 1]) < 0.5
