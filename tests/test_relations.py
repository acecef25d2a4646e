"""How loadings go with what else is known of their rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from smartcpd import CPModel, Mode, datasets
from smartcpd.errors import InvalidDataError, InvalidParameterError


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def model(rng):
    modes = [Mode("subject", [f"s{i}" for i in range(12)]), Mode("gene", ["a", "b", "c"])]
    return CPModel([rng.random((12, 2)), rng.random((3, 2))], modes=modes)


def test_numbers_are_compared_as_scipy_does(model, rng):
    age = rng.random(12)
    found = model.relate("subject", {"age": age})
    for r, row in enumerate(found.rows):
        expected = stats.spearmanr(model.factors[0][:, r], age)
        assert row[:3] == (r + 1, "age", "number")
        assert row.statistic == pytest.approx(expected.statistic)
        assert row.p == pytest.approx(expected.pvalue)
        assert row.q >= row.p


def test_groups_are_compared_by_their_ranks(model):
    group = np.where(model.factors[0][:, 0] > np.median(model.factors[0][:, 0]), "high", "low")
    found = model.relate(0, {"group": group})
    first, second = found.rows
    assert first.q < 0.05
    assert first.statistic > second.statistic
    loadings = model.normalize().factors[0][:, 0]
    means = {g.group: g.mean for g in found.groups if g.component == 1}
    assert means["high"] == pytest.approx(loadings[group == "high"].mean())
    assert means["low"] == pytest.approx(loadings[group == "low"].mean())


def test_rows_are_found_by_their_labels_in_any_order(model, rng):
    age = rng.random(12)
    straight = model.relate(0, {"subject": [f"s{i}" for i in range(12)], "age": age})
    order = rng.permutation(12)
    mixed = model.relate(0, {"who": [f"s{i}" for i in order], "age": age[order]}, on="who")
    assert mixed.rows == straight.rows
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": age[order]}, index=[f"s{i}" for i in order])
    assert model.relate(0, frame).rows == straight.rows


def test_rows_that_the_table_lacks_are_named_and_left_out(model, rng):
    age = rng.random(12)
    found = model.relate(0, {"subject": [f"s{i}" for i in range(10)], "age": age[:10]})
    assert found.unknown == ("s10", "s11")
    assert {row.n for row in found.rows} == {10}


def test_missing_values_are_left_out(model, rng):
    age = rng.random(12)
    age[3] = np.nan
    found = model.relate(0, {"age": age, "sex": ["f", None] * 6})
    assert [row.n for row in found.rows] == [11, 11, 6, 6]


def test_a_column_without_variation_says_nothing(model):
    row = model.relate(0, {"same": np.ones(12)}).rows[0]
    assert np.isnan(row.statistic)
    assert row.p == 1.0


def test_means_of_groups_get_intervals():
    X, truth = datasets.count((12, 9, 8), rank=1, a_max=1.0, random_state=0)
    model = CPModel(truth, loss_function="poisson")
    intervals = model.intervals(X)
    found = model.relate(0, {"half": ["a", "b"] * 6}, intervals=intervals)
    for group in found.groups:
        assert group.lower < group.mean < group.upper
        own = np.flatnonzero(np.array(["a", "b"] * 6) == group.group)
        widths = (intervals.upper[0] - intervals.lower[0])[own, 0]
        assert group.upper - group.lower < widths.mean()


@pytest.mark.parametrize(
    ("table", "options", "match"),
    [
        ({"age": [1, 2, 3]}, {}, "3 rows and mode 'subject' has 12"),
        ({"age": np.ones(12)}, {"on": "name"}, "no column 'name'"),
        ({"subject": [f"s{i}" for i in range(12)]}, {}, "no column to compare"),
        ({"subject": ["x"] * 12, "age": np.ones(12)}, {}, "more than once"),
        ({"subject": list("abcdefghijkl"), "age": np.ones(12)}, {}, "No row of mode"),
        ([1, 2], {}, "dict of columns"),
        ({"a": [1], "b": [1, 2]}, {}, "one length"),
    ],
)
def test_tables_that_do_not_fit_are_refused(model, table, options, match):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=match):
        model.relate(0, table, **options)


def test_intervals_of_another_model_are_refused(model):
    other = CPModel([np.ones((4, 1)), np.full((5, 1), 2.0)], loss_function="poisson")
    intervals = other.intervals(np.tile([1, 2, 3, 2, 2], (4, 1)))
    with pytest.raises(InvalidParameterError, match="not about this"):
        model.relate(0, {"age": np.ones(12)}, intervals=intervals)


def test_relations_are_printed_and_drawn(model, rng):
    pytest.importorskip("matplotlib")
    found = model.relate(0, {"age": rng.random(12), "sex": ["f", "m"] * 6})
    assert "Spearman" not in str(found)
    assert len(str(found).splitlines()) == 5
    assert len(found.plot("age")) == 2
    assert "mean loading by sex" in found.plot("sex")[0].get_xlabel()
    with pytest.raises(InvalidParameterError, match="no column"):
        found.plot("height")
