"""Models and tensors as things to work with: components, labels, numbers, displays, pages."""

import sys
import types

import numpy as np
import pytest

import smartcpd
from smartcpd import CPModel, LabelledTensor, Mode, SmartCPD, SparseTensor, datasets, quality
from smartcpd._fitting.progress import NotebookLine
from smartcpd._inference.diagnosis import examine
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd._problem.history import History, Record
from smartcpd.errors import InvalidParameterError

COUNTS, TRUTH = datasets.count((24, 9, 7), 3, a_max=1.5, random_state=0)
CITIES = ["Rome", "Oslo", "<b>Bonn</b>", "Kyiv", "Bern", "Wien", "Turku"]
MODES = (
    Mode("hour", np.arange(24), "cycle"),
    Mode("day", np.arange("2024-01-28", "2024-02-06", dtype="datetime64[D]")),
    Mode("city", CITIES),
)
X = LabelledTensor(COUNTS, MODES)
NONZERO = np.nonzero(COUNTS)
SPARSE = SparseTensor(NONZERO, COUNTS[NONZERO], COUNTS.shape)


@pytest.fixture(scope="module")
def fitted():
    return SmartCPD(3, n_init=2, consensus=True, random_state=0).fit(X)


@pytest.fixture(scope="module")
def model(fitted):
    return fitted.model_


class TestComponents:
    def test_are_models_of_their_own(self, model):
        assert len(model) == 3
        parts = [np.asarray(component.full()) for component in model]
        np.testing.assert_allclose(sum(parts), model.full())
        np.testing.assert_allclose(model[2].full(), parts[2])
        np.testing.assert_allclose(model[[0, 2]].full(), parts[0] + parts[2])
        np.testing.assert_allclose(model[:2].full(), parts[0] + parts[1])
        assert model[-1].modes == model.modes
        with pytest.raises(IndexError):
            model[3]
        with pytest.raises(InvalidParameterError, match="at least one component"):
            model[[]]

    def test_of_a_fit_are_in_the_order_of_the_page(self, model):
        shares = [entry["share"] for entry in model.top(k=1)]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
        again = model[[2, 0, 1]].sort()
        np.testing.assert_allclose(again.factors[0], model.sort().factors[0])
        np.testing.assert_allclose(again.factors[0], model.normalize().factors[0])

    def test_count_from_one_where_people_read(self, fitted, model):
        assert [entry["component"] for entry in model.top()] == [1, 2, 3]
        rows = [line.split()[0] for line in str(fitted.consensus_).splitlines()[2:5]]
        assert rows == ["1", "2", "3"]
        twice = CPModel([np.hstack([A, A[:, :1]]) for A in TRUTH], loss_function="poisson")
        assert "1 and 4" in str(twice.diagnose(COUNTS)["duplicate components"])
        assert fitted.get_feature_names_out()[0] == "component 1"
        assert set(model.to_polars()["component"]) == {1, 2, 3}

    def test_of_a_start_stay_where_they_are(self, model):
        turned = model[[1, 2, 0]]
        found = smartcpd.decompose(X, 3, "poisson", init=turned, max_epochs=3)
        for A, B in zip(found.align(turned).factors, found.factors, strict=True):
            np.testing.assert_array_equal(A, B)


class TestTop:
    def test_shares_are_those_of_the_column(self, model):
        rows = model.top(1, "city", k=99)
        assert sum(share for _, share in rows) == pytest.approx(1)
        assert [label for label, _ in rows] == [
            CITIES[k] for k in np.argsort(-model.factors[2][:, 1], kind="stable")
        ]
        assert list(model.top(1, k=2)) == ["hour", "day", "city"]

    def test_what_is_not_there_is_refused(self, model):
        for wrong in ({"component": 3}, {"mode": "town"}, {"k": 0}):
            with pytest.raises(InvalidParameterError):
                model.top(**wrong)


class TestLabels:
    def test_name_cells(self, model):
        expected = model.mean([[3, 1, 0], [3, 1, 4]])
        cells = {"hour": 3, "day": "2024-01-29", "city": ["Rome", "Bern"]}
        np.testing.assert_array_equal(model.mean(cells), expected)
        rows = [("3", "2024-01-29", "Rome"), ("3", "2024-01-29", "Bern")]
        np.testing.assert_array_equal(model.mean(rows), expected)
        pd = pytest.importorskip("pandas")
        day = pd.Timestamp("2024-01-29")
        frame = pd.DataFrame({"city": ["Rome", "Bern"], "day": [day, day], "hour": [3, 3]})
        np.testing.assert_array_equal(model.mean(frame), expected)

    def test_that_are_not_there_are_named(self, model):
        with pytest.raises(InvalidParameterError, match="no row 'Paris'"):
            model.mean({"hour": 3, "day": "2024-01-29", "city": "Paris"})
        with pytest.raises(InvalidParameterError, match="'day' is missing"):
            model.mean({"hour": 3, "city": "Rome"})
        with pytest.raises(InvalidParameterError, match="No mode is called 'town'"):
            model.sel(town="Rome")

    def test_choose_rows_of_models_as_of_tensors(self, model):
        for chosen in (
            {"city": "Oslo"},
            {"city": ["Wien", "Rome"], "hour": slice(6, 18)},
            {"day": slice("2024-02", None), "hour": 0},
            {"day": slice(None, "2024-01"), "city": slice("Oslo", "Bern")},
        ):
            np.testing.assert_allclose(
                np.asarray(model.sel(**chosen).full()), np.asarray(model.full().sel(**chosen))
            )
        assert X.sel(day=slice("2024-02", "2024-02")).shape == (24, 5, 7)
        with pytest.raises(InvalidParameterError, match="single cell"):
            model.sel(hour=1, day="2024-01-29", city="Rome")

    def test_go_through_full_and_transform(self, fitted, model):
        assert model.full().modes == MODES
        rows = fitted.transform(X[3:6])
        assert rows.modes[0].labels.tolist() == [3, 4, 5]
        assert rows.modes[1].labels.tolist() == [1, 2, 3]
        np.testing.assert_allclose(rows, model.transform(COUNTS[3:6]))


class TestTensors:
    @pytest.mark.parametrize("tensor", [COUNTS, SPARSE])
    def test_are_cut_as_arrays_are(self, tensor):
        labelled = LabelledTensor(tensor, MODES)
        for key in (slice(2, 5), 3, (slice(None), [1, 4]), (..., 2), ([0, 5], ...), (0, ..., 1)):
            np.testing.assert_array_equal(np.asarray(labelled[key]), COUNTS[key])
        assert labelled[:, [4, 1]].modes[1].text() == ["2024-02-01", "2024-01-29"]
        assert len(labelled) == 24
        assert labelled.ndim == 3

    def test_as_frames_and_arrays(self):
        pytest.importorskip("pandas")
        frame = LabelledTensor(SPARSE, MODES).to_frame()
        assert list(frame.columns) == ["hour", "day", "city", "value"]
        assert frame["value"].sum() == COUNTS.sum()
        assert len(X.to_frame()) == COUNTS.size
        pytest.importorskip("xarray")
        array = X.to_xarray()
        np.testing.assert_array_equal(array.sel(city="Rome").values, COUNTS[:, :, 0])

    def test_of_other_libraries(self):
        ttb = pytest.importorskip("pyttb")
        quick = {"max_epochs": 3, "random_state": 0}
        expected = smartcpd.decompose(COUNTS, 2, "poisson", **quick)
        found = smartcpd.decompose(ttb.tensor(COUNTS.astype(float)), 2, "poisson", **quick)
        np.testing.assert_allclose(found.factors[0], expected.factors[0])

    def test_dask_tables(self):
        pd = pytest.importorskip("pandas")
        dd = pytest.importorskip("dask.dataframe")
        table = pd.DataFrame(COUNTS[:, :, 0], columns=list("abcdefghi"))
        quick = {"max_epochs": 3, "random_state": 0}
        found = smartcpd.decompose(dd.from_pandas(table, npartitions=2), 2, "poisson", **quick)
        assert found.modes[1].text() == list("abcdefghi")
        expected = smartcpd.decompose(COUNTS[:, :, 0], 2, "poisson", **quick)
        np.testing.assert_array_equal(found.factors[0], expected.factors[0])


class TestStarts:
    def test_may_come_from_other_libraries(self, model):
        ours = smartcpd.decompose(COUNTS, 3, "poisson", init=model, max_epochs=2, random_state=0)
        for package, make in (("tensorly", "to_tensorly"), ("pyttb", "to_pyttb")):
            pytest.importorskip(package)
            start = getattr(model, make)()
            theirs = smartcpd.decompose(
                COUNTS, 3, "poisson", init=start, max_epochs=2, random_state=0
            )
            np.testing.assert_allclose(theirs.factors[0], ours.factors[0], rtol=1e-9)

    @pytest.mark.parametrize("rank", [2, 4])
    def test_may_have_another_rank(self, model, rank):
        found = smartcpd.decompose(COUNTS, rank, "poisson", init=model, random_state=0)
        assert found.rank == rank
        if rank > 3:
            assert found.loss(COUNTS) <= model.loss(COUNTS) + 1e-6


def test_swapped_arguments_are_explained(elsewhere):
    with pytest.raises(InvalidParameterError, match=r"The path comes first: write\('x.npy', X\)"):
        smartcpd.write(COUNTS, "x.npy")


def test_the_command_line_reads_a_saved_model(model, elsewhere, run):
    path = model.save("mine")
    code, out, _ = run("show", path, "--json")
    assert code == 0
    assert '"rank": 3' in out
    assert run("show", "mine")[0] == 0
    assert run("report", "mine")[0] == 0
    with open("cells.csv", "w") as file:
        file.write("hour,day,city\n3,2024-01-29,Rome\n")
    code, out, _ = run("predict", "mine", "--at", "cells.csv")
    assert code == 0
    expected = float(model.mean([[3, 1, 0]])[0])
    assert float(out.splitlines()[1].split(",")[-1]) == pytest.approx(expected, rel=1e-4)


def test_a_page_from_python_says_whether_the_rank_suits(fitted, elsewhere, monkeypatch):
    verdict = RankVerdict(3, Suits.WELL, tried=(1,))
    monkeypatch.setattr(examine, "checked_rank", lambda *_: verdict)
    assert verdict.headline in fitted.report(X, "fit.html").read_text()


def test_pages_from_python(fitted, model, elsewhere):
    page = fitted.report(X, "fit.html").read_text()
    assert "Converged" in page
    assert "deviance" in page
    assert "Converged" not in model.report("model.html").read_text()


@pytest.fixture(scope="module")
def things(fitted, model):
    chosen = smartcpd.select(X, [1, 2], "poisson", cv=2, max_epochs=5, random_state=0)
    long = History(Record(float(k), k, k, 1.0 / (k + 1), 0.0, "a") for k in range(5000))
    return [
        fitted, SmartCPD(3), model, X, LabelledTensor(SPARSE, MODES), SPARSE,
        fitted.consensus_, model.intervals(X), quality.measure(model, X),
        fitted.diagnose(X), chosen, fitted.history_, long, History(),
    ]  # fmt: skip


class TestDisplays:
    def test_are_small_and_harmless(self, things):
        for thing in things:
            page = thing._repr_html_()
            assert 0 < len(page) < 30_000, type(thing)
            assert "<script" not in page
            assert "<b>Bonn</b>" not in page
            assert page.count("<svg") == page.count("</svg>")
            assert len(repr(thing)) < 400, type(thing)

    def test_have_pictures(self, fitted, model):
        for thing in (fitted, model, fitted.consensus_, fitted.history_, model.intervals(X)):
            assert "<svg" in thing._repr_html_()

    def test_say_what_was_found(self, fitted, things):
        said = repr(fitted)
        share = 100 * quality.measure(fitted.model_, X).deviance_explained
        assert f"3 components, {share:.0f} % of deviance, converged" in said
        assert "loss poisson, because" in said
        assert repr(SmartCPD(3)) == "SmartCPD(rank=3)"

    def test_in_a_browser(self, things):
        playwright = pytest.importorskip("playwright.sync_api")
        from test_report_browser import CHROMIUM, FLAGS

        if CHROMIUM is None:
            pytest.skip("no chromium on this machine")
        body = "".join(thing._repr_html_() for thing in things)
        with playwright.sync_playwright() as started:
            chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            tab = chromium.new_page(viewport={"width": 480, "height": 600})
            tab.set_content(f"<!doctype html><body style='background:#111;color:#ddd'>{body}")
            assert tab.evaluate("document.body.scrollWidth") <= 480  # wide tables scroll inside
            assert tab.evaluate("document.querySelectorAll('svg').length") > 20
            chromium.close()


def test_progress_in_a_notebook(monkeypatch):
    shown = []

    class Handle:
        def update(self, content, raw):
            shown.append(content["text/plain"])

    def display(content, raw, display_id):
        shown.append(content["text/plain"])
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    line = NotebookLine.here()
    for seconds in (0.1, 0.7, 0.8, 1.4):
        line.say(seconds, f"at {seconds}")
    line.clear()
    assert shown == ["smartcpd: 1 s, at 0.7", "smartcpd: 1 s, at 1.4", ""]
    ipython.get_ipython = lambda: None
    assert NotebookLine.here() is None


def test_a_guess_at_how_models_are_read_is_answered():
    with pytest.raises(AttributeError, match=r"smartcpd\.CPModel\.load"):
        smartcpd.load  # noqa: B018


def test_names_of_the_package_are_complete():
    assert set(dir(smartcpd)) >= {*smartcpd.__all__, *smartcpd.FURTHER}
    for name in dir(smartcpd):
        assert getattr(smartcpd, name) is not None


def test_selection_talks_through_logging(caplog, capsys):
    with caplog.at_level("INFO", "smartcpd"):
        smartcpd.select(COUNTS, [1], "poisson", cv=2, max_epochs=2, random_state=0)
    assert "rank 1, fold 1" in caplog.text
    assert capsys.readouterr().err == ""
