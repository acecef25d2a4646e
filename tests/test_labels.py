"""Names travel from the data to the model and through files, and never into the mathematics."""

import numpy as np
import pytest

from smartcpd import CPModel, LabelledTensor, Mode, SmartCPD, SparseTensor, datasets
from smartcpd.errors import InvalidDataError, InvalidParameterError

X, _ = datasets.count((6, 5, 4), 2, random_state=0)
DAYS = Mode("day", np.arange("2024-01-01", "2024-01-07", dtype="datetime64[D]"))
PLACES = Mode("place", ["Loop", "<b>", "Zoo", "é", "x,y"])
SIZES = Mode("size", [0.5, 1.0, 2.0, 4.0])
MODES = (DAYS, PLACES, SIZES)


def test_kinds_follow_from_labels():
    assert [mode.kind for mode in MODES] == ["time", "category", "number"]
    assert Mode("hour", np.arange(24), "cycle").kind.ordered
    assert DAYS.text()[0] == "2024-01-01"
    assert SIZES.text() == ["0.5", "1", "2", "4"]


def test_labels_are_read_only_copies():
    given = np.arange(4)
    mode = Mode("k", given)
    given[0] = 7
    assert mode.labels[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        mode.labels[0] = 1


@pytest.mark.parametrize("tensor", [X, SparseTensor(np.argwhere(X), X[X > 0], X.shape)])
def test_a_fit_keeps_them_and_does_not_depend_on_them(tensor, tmp_path):
    plain = SmartCPD(2, "poisson", random_state=0).fit(tensor)
    named = SmartCPD(2, "poisson", random_state=0).fit(LabelledTensor(tensor, MODES))
    assert named.model_.modes == MODES
    for A, B in zip(plain.factors_, named.factors_, strict=True):
        np.testing.assert_array_equal(A, B)
    assert named.model_.loss(LabelledTensor(tensor, MODES)) == plain.model_.loss(tensor)
    named.model_.sort().save(tmp_path / "m")
    assert CPModel.load(tmp_path / "m").modes == MODES


def test_xarray_brings_its_coordinates():
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(X, dims=("day", "place", "size"), coords={"place": PLACES.labels})
    model = SmartCPD(2, "poisson", random_state=0).fit(array).model_
    assert [mode.name for mode in model.modes] == ["day", "place", "size"]
    assert model.modes[1] == PLACES
    np.testing.assert_array_equal(model.modes[0].labels, np.arange(6))
    with pytest.raises(InvalidDataError, match="Dataset"):
        SmartCPD(2).fit(xarray.Dataset({"a": array}))


def test_what_does_not_match_is_refused():
    with pytest.raises(InvalidDataError, match="5 labels for 4 rows"):
        LabelledTensor(X, (DAYS, PLACES, PLACES))
    with pytest.raises(InvalidDataError, match="order 3"):
        LabelledTensor(X, (DAYS, PLACES))
    with pytest.raises(InvalidDataError, match="different names"):
        LabelledTensor(X, (DAYS, PLACES, Mode("day", range(4))))
    with pytest.raises(InvalidDataError, match="a name; got 3"):
        LabelledTensor(X, (DAYS, PLACES, 3))
    with pytest.raises(InvalidParameterError, match="kind 'sort'"):
        Mode("k", [1], "sort")


def test_a_name_alone_numbers_the_rows():
    X = LabelledTensor(np.ones((2, 3)), ["subject", "sensor"])
    assert X.modes == (Mode.numbered("subject", 2), Mode.numbered("sensor", 3))
