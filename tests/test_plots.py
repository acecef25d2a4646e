"""Plots: axes in, axes out, labels from the model."""

import builtins

import numpy as np
import pytest

from smartcpd import CPModel, Mode, plots
from smartcpd._problem.history import History, Record
from smartcpd.errors import InvalidDataError, InvalidParameterError, MissingExtraError

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
