"""Models as lists of labels and as tables of other libraries."""

import numpy as np
import pytest

from smartcpd import CPModel, Mode
from smartcpd.errors import InvalidParameterError, MissingExtraError

MODEL = CPModel(
    [np.array([[1.0, 0.0], [3.0, -5.0], [2.0, 1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])],
    weights=[2.0, 1.0],
    loss_function="gaussian",
    modes=[
        Mode("who", ["ann", "bob", "cy"]),
        Mode("day", np.array(["2024-01-01", "2024-01-02"], "M8")),
    ],
)


def test_top():
    """Entries relative to the largest of their column, since this model has negative ones."""
    assert MODEL.top(0, "who", 2) == [("bob", 1.0), ("cy", pytest.approx(2 / 3))]
    assert MODEL.top(1, 0, 99) == [("bob", -1.0), ("cy", pytest.approx(0.2)), ("ann", 0.0)]
    (label, value), _ = MODEL.top(0, "day")
    assert (label.isoformat()[:10], value) == ("2024-01-02", 1.0)
    assert CPModel(MODEL.factors).top(0, "mode 1", 1) == [(1, 1.0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, "who"), "component must be one of 0 to 1"),
        ((0, "when"), "No mode is called 'when'; they are 'who', 'day'"),
        ((0, 2), "mode must be a name or one of 0 to 1"),
        ((0, "who", 0), "k must be"),
    ],
)
def test_top_refuses(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        MODEL.top(*arguments)


def test_to_frame():
    frame = MODEL.to_frame()
    assert list(frame.columns) == ["mode", "label", "component", "value"]
    assert len(frame) == 2 * (3 + 2)
    chosen = frame[(frame["mode"] == "who") & (frame["component"] == 2)]
    assert dict(zip(chosen["label"], chosen["value"], strict=True)) == {
        "ann": 0.0,
        "bob": -5.0,
        "cy": 1.0,
    }


def test_to_xarray():
    data = MODEL.to_xarray()
    assert float(data["factor who"].sel(who="bob", component=2)) == -5.0
    assert data["weights"].values.tolist() == [2.0, 1.0]
    assert data.attrs["loss"] == "gaussian"
    clash = CPModel(MODEL.factors, modes=[Mode("component", list("abc")), MODEL.modes[1]])
    with pytest.raises(InvalidParameterError, match="needs for itself"):
        clash.to_xarray()


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_what_is_missing_is_named(package, monkeypatch):
    import importlib

    real = importlib.import_module

    def without(name, *rest):
        if name == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtraError, match=rf"smartcpd\[{package}\]"):
        MODEL.to_frame() if package == "pandas" else MODEL.to_xarray()
