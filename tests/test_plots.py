"""Plots: axes in, axes out, labels from the model."""

import builtins
from itertools import pairwise

import numpy as np
import pytest

from smartcpd import CPModel, Mode, SmartCPD, plots
from smartcpd._problem.history import History, Record
from smartcpd.errors import (
    IncompatibleError,
    InvalidDataError,
    InvalidParameterError,
    MissingExtraError,
)
from smartcpd.quality import measure

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

MODES = (
    Mode("day", np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]")),
    Mode("hour", np.arange(24), "cycle"),
    Mode("place", ["$x^$", "<b>", "Zoo", "é", *(f"place {k}" for k in range(20))]),
    Mode("size", [0.5, 1.0, 2.0, 4.0]),
    Mode("week", [f"2024-W{k:02d}" for k in range(1, 30)], "time"),
)
RNG = np.random.default_rng(0)
MODEL = CPModel([RNG.random((len(m), 2)) for m in MODES], [1.0, 4.0], "poisson", MODES)
SIGNED = CPModel([RNG.standard_normal((len(m), 2)) for m in MODES], None, "gaussian", MODES)
HISTORY = History(Record(0.1 * k, k, k, 1.0 / (k + 1), 0.0, "ab"[k > 5]) for k in range(12))


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(axes):
    """Force everything to be laid out, which is when a bad label would fail."""
    first = np.atleast_1d(axes).ravel()[0]
    first.figure.canvas.draw()
    return axes


@pytest.mark.parametrize("model", [MODEL, SIGNED])
def test_a_grid_of_all_components(model):
    axes = model.plot()
    assert axes.shape == (2, 5)
    assert [ax.get_title() for ax in axes[0]] == [mode.name for mode in MODES]
    assert drawn(model.plot(1)).shape == (1, 5)


def test_a_component_by_name_and_number_of_its_mode():
    ax = drawn(MODEL.plot_component(0, "place"))
    names = [label.get_text() for label in ax.get_yticklabels()]
    top = np.argsort(-MODEL.factors[2][:, 0])[:10]
    assert names[::-1] == [MODES[2].text()[k] for k in top]
    assert len(MODEL.plot_component(1)) == 5
    given = plt.subplots()[1]
    assert MODEL.plot_component(1, 3, ax=given) is given


def test_dates_are_dates():
    ax = drawn(MODEL.plot_component(0, "day"))
    low, high = matplotlib.dates.num2date(ax.get_xlim())
    assert (low.year, high.year) == (2023, 2024)


def test_no_line_joins_what_lies_on_both_sides_of_a_long_gap():
    summers = [np.arange(f"{y}-07-01", f"{y}-07-11", dtype="datetime64[D]") for y in (2011, 2012)]
    modes = (Mode("day", np.concatenate(summers)), Mode("place", ["a", "b"]))
    model = CPModel([np.ones((len(m), 1)) for m in modes], None, "poisson", modes)
    lines = drawn(model.plot_component(0, "day")).get_lines()
    assert [line.get_xdata().size for line in lines] == [10, 10]


def test_shares_in_order():
    ax = drawn(MODEL.plot_scree())
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == sorted(heights, reverse=True)
    assert sum(heights) == pytest.approx(100)


def test_the_loss_of_a_fit():
    ax = drawn(HISTORY.plot())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    given = plt.subplots()[1]
    assert plots.plot_history(HISTORY, given) is given
    drawn(plots.plot_history(History(HISTORY[:1])))


def test_a_model_without_labels():
    assert drawn(CPModel([np.ones((4, 1)), np.zeros((30, 1))]).plot()).shape == (1, 2)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidParameterError, match="0 to 1"):
        MODEL.plot_component(2)
    with pytest.raises(InvalidParameterError, match="'hour'"):
        MODEL.plot_component(0, "hours")
    with pytest.raises(InvalidParameterError, match="n_components"):
        MODEL.plot(3)
    with pytest.raises(InvalidParameterError, match="10 axes"):
        MODEL.plot(axes=plt.subplots(1, 2)[1])
    with pytest.raises(InvalidDataError, match="no rows"):
        plots.plot_history(History())


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError("gone", name="matplotlib")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"smartcpd\[plot\]"):
        MODEL.plot_scree()


class TestNumbers:
    """Components are numbered from 1, by their places in the model."""

    def test_of_all_and_of_one(self):
        # The second component is the larger one.
        assert [t.get_text() for t in MODEL.plot_scree().get_xticklabels()] == ["2", "1"]
        assert "component 1:" in MODEL.plot_component(0, "size").get_title()
        names = [text.get_text() for ax in MODEL.plot().ravel() for text in ax.texts]
        assert [name.split("\n")[0] for name in names] == ["component 2", "component 1"]


def test_long_names_are_cut_and_others_do_not_overlap():
    modes = (Mode("name", ["x" * 200, "y"]), Mode("month", [f"2024-{k:02d}" for k in range(1, 13)]))
    modes = (modes[0], Mode("month", modes[1].labels, "cycle"))
    model = CPModel([np.ones((2, 1)), np.ones((12, 1))], modes=modes)
    figure, given = plt.subplots(1, 2, figsize=(4, 2), layout="constrained")
    bars, strip = model.plot_component(0, ax=given)
    figure.canvas.draw()
    assert max(len(t.get_text()) for t in bars.get_yticklabels()) <= 24
    boxes = [t.get_window_extent() for t in strip.get_xticklabels() if t.get_text()]
    assert all(a.x1 <= b.x0 for a, b in pairwise(boxes))


def test_a_history_whose_phases_end_at_other_losses():
    rows = [(1.0, "wide"), (1e-6, "wide"), (0.5, "narrow"), (0.1, "narrow"), (0.05, "narrow")]
    history = History(Record(float(k), k, k, x, 0.0, p) for k, (x, p) in enumerate(rows))
    lines = drawn(history.plot()).get_lines()
    # Nothing goes below the end of the fit, and no line joins what is far apart.
    assert all(np.nanmin(line.get_ydata()) >= 0.04 for line in lines)
    assert [len(line.get_xdata()) for line in lines] == [2, 3]


@pytest.fixture(scope="module")
def small():
    modes = (Mode("place", list("abcdefgh")), Mode("hour", np.arange(24), "cycle"))
    rng = np.random.default_rng(1)
    factors = [rng.random((len(m), 2)) + 0.2 for m in modes]
    model = CPModel(factors, [4.0, 9.0], "poisson", modes)
    return model, rng.poisson(np.asarray(model.full()))


class TestMore:
    """What the results of inference look like."""

    def test_intervals(self, small):
        # A matrix does not determine its components: intervals need a third mode.
        week = Mode("day", np.arange(6))
        rng = np.random.default_rng(2)
        factors = [*small[0].factors, rng.random((6, 2)) + 0.2]
        model = CPModel(factors, [40.0, 90.0], "poisson", (*small[0].modes, week))
        found = model.intervals(rng.poisson(np.asarray(model.full())))
        ax = drawn(found.plot(0, "place"))
        top = np.argsort(-found.model.factors[0][:, 0])
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names[::-1] == ["abcdefgh"[k] for k in top]
        band = drawn(found.plot(1, "hour")).get_lines()[0]
        np.testing.assert_allclose(band.get_ydata(), found.model.factors[1][:, 1])
        with pytest.raises(InvalidParameterError, match="0 to 1"):
            found.plot(2)

    def test_calibration_and_residuals(self, small):
        found = measure(*small)
        ax = drawn(found.plot())
        points = ax.containers[0].lines[0]
        assert points.get_ydata().tolist() == [b.observed for b in found.calibration]
        bars = drawn(found.plot_residuals()).patches
        assert [bar.get_width() for bar in bars][::-1] == [
            cell.residual for cell in found.hot_cells[:12]
        ]

    def test_comparison(self, small):
        model = small[0]
        ax = drawn(model.plot_comparison(model[[1, 0]]))
        np.testing.assert_allclose(np.diag(ax.get_images()[0].get_array()), 1.0)
        assert [t.get_text() for t in ax.get_xticklabels()] == ["2", "1"]
        with pytest.raises(IncompatibleError, match="one shape"):
            model.plot_comparison(MODEL)

    def test_consensus(self, small):
        est = SmartCPD(1, "poisson", n_init=2, consensus=True, random_state=0).fit(small[1])
        ax = drawn(est.consensus_.plot())
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == [c.stability for c in est.consensus_.components]
        assert ax.get_xticklabels()[0].get_text() == "1"
