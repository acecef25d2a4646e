"""The page about a model: what it says, what it never does, how large it gets."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from reports import EVIL, MODEL, MODES, NAMES, full_report

from smartcpd import CPModel, Mode
from smartcpd._fitting.shares import readable
from smartcpd.errors import InvalidParameterError
from smartcpd.quality import measure
from smartcpd.report import write_report
from smartcpd.report.axes import log_ticks, number_ticks, spread_labels, time_ticks
from smartcpd.report.repeat import python_code
from smartcpd.report.text import number, percent


class Page(HTMLParser):
    """All tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_data(self, data):
        self.words.append(data)

    def embedded(self):
        return json.loads(max(self.words[-30:], key=lambda w: w.startswith('{"signed"')))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return full_report(tmp_path_factory.mktemp("page") / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_it_says_what_there_is(page):
    words = " ".join(page.words)
    for expected in (
        "day × hour × place <i> × size",
        "40 × 24 × 30 × 4",
        "rank 3",
        "loss poisson",
        "Deviance explained",
        "Calibration",
        "Converged: nothing <b>moved</b>.",
        "3 rows had no place & were left out.",
        "smartcpd fit 'events <1>.csv' --modes day,hour,place,size",
        "SmartCPD(rank=3, loss='poisson', random_state=7).fit(X)",
    ):
        assert expected in words
    assert len([tag for tag, _ in page.tags if tag == "article"]) == 3


def test_labels_are_text(page, text):
    assert any(EVIL in word for word in page.words)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [tag for tag, _ in page.tags if tag in ("img", "i", "b ")]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "\u2028" not in text.split('id="data">')[1]
    assert page.embedded()["modes"][2]["labels"][: len(NAMES)] == list(NAMES)


def test_nothing_is_loaded_and_only_its_own_script_runs(page):
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster", "style"):
            assert not attributes.get(name, "#").strip("#").startswith(("http", "//", "data:")), tag
        assert "src" not in attributes
        assert "style" not in attributes
        assert tag not in ("link", "iframe", "object", "embed", "base")
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_ids_are_unique_and_links_lead_somewhere(page):
    assert len(page.ids) == len(set(page.ids))
    for _, attributes in page.tags:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in page.ids
    pictures = [a for tag, a in page.tags if tag == "svg"]
    assert all("aria-label" in a or a.get("aria-hidden") == "true" for a in pictures)


def test_components_come_largest_first(page):
    shares = page.embedded()["shares"]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-3)


def test_a_model_alone_is_enough(tmp_path):
    model = CPModel([np.ones((1, 1)), np.zeros((3, 1))])
    words = " ".join(Page(write_report(tmp_path / "r.html", model).read_text("utf-8")).words)
    assert "One component" in words
    assert "Nothing was measured" in words


def test_signed_factors(tmp_path):
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((len(m), 3)) for m in MODES]
    model = CPModel(factors, [1.0, -2.0, 3.0], "gaussian", MODES)
    quality = measure(model, model.full() + rng.standard_normal(model.shape))
    path = write_report(tmp_path / "r.html", model, quality=quality)
    text = path.read_text("utf-8")
    assert "negative" in text
    assert "of the norm" in text
    np.testing.assert_allclose(readable(model).model.full(), model.full()[()], rtol=1e-10)


def test_a_hundred_thousand_labels_stay_a_small_page(tmp_path):
    rng = np.random.default_rng(0)
    sizes = (100_000, 50_000, 24)
    modes = (
        Mode("user", [f"user number {k}" for k in range(sizes[0])]),
        Mode("time", np.datetime64("2020-01-01T00:00") + np.arange(sizes[1]).astype("m8[m]")),
        Mode("hour", np.arange(24), "cycle"),
    )
    factors = [rng.gamma(0.2, 1.0, (size, 20)) for size in sizes]
    model = CPModel(factors, None, "poisson", modes)
    path = write_report(tmp_path / "r.html", model)
    assert path.stat().st_size < 2e6
    text = path.read_text("utf-8")
    assert "of 100,000 rows of user" in text
    strongest = set(modes[0].labels[model.factors[0].argmax(axis=0)].tolist())
    assert strongest <= set(Page(text).embedded()["modes"][0]["labels"])


def test_many_components_stay_a_small_page(tmp_path):
    rng = np.random.default_rng(0)
    model = CPModel([rng.random((500, 100)) for _ in range(4)], None, "poisson")
    assert write_report(tmp_path / "r.html", model).stat().st_size < 3e6


def test_settings_that_code_cannot_spell_are_left_out_of_it():
    settings = {"init": [np.ones(3)], "random_state": np.random.default_rng(0), "rank": 9}
    settings |= {"constraint": {0: "simplex"}, "tol": 0.02, "no such thing": 1}
    code = python_code(settings, 2, "poisson")
    assert "SmartCPD(rank=2, loss='poisson', constraint={0: 'simplex'}).fit(X)" in code


def test_strange_labels_do_not_stop_it(tmp_path):
    modes = (Mode("a", ["\ud800", "\x00", "x" * 10_000]), Mode("b", ["", " ", "‮"]))
    model = CPModel([np.eye(3), np.eye(3)], None, "poisson", modes)
    path = write_report(tmp_path / "r.html", model, quality=measure(model, np.eye(3)))
    assert "x" * 200 not in path.read_text("utf-8")


def test_the_old_page_stays_if_the_new_one_fails(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    with pytest.raises(AttributeError):
        write_report(path, MODEL, quality="none of your business")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="not a directory"):
        write_report(tmp_path / "nowhere" / "r.html", MODEL)
    with pytest.raises(InvalidParameterError, match="list of sentences"):
        write_report(tmp_path / "r.html", MODEL, notes="one")


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("1990-06-01", "2024-01-01", "2000"),
        ("2022-01-01", "2022-11-30", "Mar"),
        ("2024-03-01", "2024-03-20", "Mar"),
        ("2024-03-01T00:00", "2024-03-01T20:00", "06:00"),
        ("2024-03-01T00:00:00", "2024-03-01T00:00:09", "00:00:02"),
    ],
)
def test_ticks_of_dates(first, last, expected):
    times = np.array([first, last], dtype="datetime64[us]")
    ticks = time_ticks(times)
    assert 2 <= len(ticks) <= 6
    assert any(expected in text for _, text in ticks)
    seconds = times.astype("datetime64[s]").astype(np.int64)
    assert all(seconds[0] <= place <= seconds[1] for place, _ in ticks)


def test_ticks_of_numbers():
    assert number_ticks(0, 1, 4) == [0, 0.25, 0.5, 0.75, 1.0]
    assert log_ticks(1e-3, 1e3) == [1e-3, 1e-1, 1e1, 1e3]
    assert spread_labels([str(k) for k in range(24)], 360) == list(range(0, 24, 2))
    assert (percent(0.12345), percent(0.00001), percent(1)) == ("12.3 %", "< 0.01 %", "100 %")
    assert (number(12345), number(0.01234), number(-2.5)) == ("12,345", "0.0123", "−2.5")
    assert (number(999.9), number(99.6, 2), number(-1e6 - 0.5)) == ("1,000", "100", "−1,000,000")


def test_code_of_the_page_has_no_way_out(text):
    script = text.split("<script>")[1]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(", script
    )


def test_whiskers_stay_in_the_picture():
    import re
    from types import SimpleNamespace

    from smartcpd.quality.result import Bin
    from smartcpd.report.fit import calibration_picture

    bins = tuple(Bin(m, m, 3.0, m, m, 50.0) for m in (0.5, 1.0, 2.0))
    found = calibration_picture(SimpleNamespace(calibration=bins, data="measurements"))
    whiskers = re.findall(r"<line[^>]*whisker[^>]*>", found)
    assert len(whiskers) == 3
    assert all(float(y) >= 0 for w in whiskers for y in re.findall(r'y[12]="([-\d.]+)"', w))
