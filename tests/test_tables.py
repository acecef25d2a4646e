"""Tables of events become tensors: the same cells as pandas counts, and a word for what is not."""

import datetime as dt
import gzip
import logging
import math
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import smartcpd
from smartcpd import from_table
from smartcpd._data.tables import counting, fetching, sorting
from smartcpd.errors import InvalidDataError, InvalidParameterError, MissingExtraError

N = 2000
AREA = 'the "area", é'


def events(seed=0, n=N):
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 90 * 86400, n)
    return pd.DataFrame(
        {
            "time": pd.Timestamp("2023-11-20 05:00") + pd.to_timedelta(seconds, "s"),
            "day": [dt.date(2024, 2, 20) + dt.timedelta(int(d)) for d in rng.integers(0, 20, n)],
            "clock": [dt.time(int(h), 40) for h in rng.integers(0, 24, n)],
            AREA: rng.choice(["zone 9", "zone 10", "o'hare", "<b>"], n),
            "id": rng.choice([7, 3, 10**15, -4], n),
            "amount": rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n),
            "points": rng.integers(-5, 50, n),
            "flag": rng.random(n) < 0.3,
        }
    )


TABLE = events()
CONNECTION = duckdb.connect()


def as_series(labelled):
    """What the tensor says, as pandas would."""
    X = labelled.tensor
    columns = [mode.labels[i] for mode, i in zip(labelled.modes, X.indices, strict=True)]
    index = pd.MultiIndex.from_arrays(columns, names=[mode.name for mode in labelled.modes])
    return pd.Series(X.values, index).sort_index()


def same(labelled, expected):
    found = as_series(labelled)
    expected = expected[expected != 0] if labelled.tensor.absent == "zero" else expected
    expected = expected.sort_index()
    assert [tuple(map(str, row)) for row in found.index] == [
        tuple(map(str, row)) for row in expected.index
    ]
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-12, atol=1e-13)


# The same as pandas.


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("value", "agg"),
    [(None, "count"), (None, "auto"), ("amount", "sum"), ("points", "auto"), ("amount", "mean")],
)
def test_aggregates_like_pandas(seed, value, agg):
    table = events(seed, 300)
    groups = table.groupby([AREA, "id"])
    how = {"auto": "sum" if value else "count"}.get(agg, agg)
    expected = groups.size() if value is None else getattr(groups[value], how)()
    labelled = from_table(table, [AREA, "id"], value, agg)
    same(labelled, expected)
    assert labelled.tensor.absent == ("unobserved" if agg == "mean" else "zero")
    assert labelled.notes == ()


def test_any_is_one_where_something_happened():
    assert set(from_table(TABLE, [AREA, "id"], agg="any").tensor.values) == {1}
    table = TABLE.assign(points=(TABLE.id == 3) * 5)
    labelled = from_table(table, [AREA, "id"], "points", "any")
    assert set(as_series(labelled).index.get_level_values("id")) == {3}
    assert labelled.shape == (4, 4)


def test_sums_do_not_depend_on_the_order_of_rows():
    mixed = TABLE.sample(frac=1, random_state=0)
    for agg in ("sum", "mean"):
        a, b = (from_table(t, [AREA, "flag"], "amount", agg).tensor for t in (TABLE, mixed))
        np.testing.assert_array_equal(a.values, b.values)
        assert all((i == j).all() for i, j in zip(a.indices, b.indices, strict=True))


def test_sums_of_extreme_values():
    table = pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 1], "v": [1e-300, 3e-301, 4e-301]})
    assert from_table(table, "a,b", "v").tensor.values == pytest.approx([1e-300, 7e-301], rel=1e-12)
    table["v"] = [2**62, 2**62, 2**62]
    found = from_table(table, "a,b", "v").tensor.values
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [2.0**62, 2.0**63])
    table["v"] = [1e308, 1e308, 5e307]
    np.testing.assert_allclose(from_table(table, "a,b", "v").tensor.values, [1e308, 1.5e308])


def test_many_modes_need_more_than_64_bits():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"m{i}": rng.integers(0, 500_000, 100) for i in range(5)})
    same(from_table(table, list(table)), table.groupby(list(table)).size())


# Bins.


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        ("1d", lambda t: t.dt.floor("D")),
        ("1w", lambda t: t.dt.to_period("W-SUN").dt.start_time),
        ("1h", lambda t: t.dt.floor("h")),
        ("15min", lambda t: t.dt.floor("15min")),
        ("30s", lambda t: t.dt.floor("30s")),
        ("1mo", lambda t: t.dt.to_period("M").dt.start_time),
        ("3mo", lambda t: t.dt.to_period("Q").dt.start_time),
        ("1y", lambda t: t.dt.to_period("Y").dt.start_time),
    ],
)
@pytest.mark.parametrize("shift", [0, -80])
def test_periods(spec, start, shift):
    table = TABLE.assign(time=TABLE.time + pd.DateOffset(years=shift))
    labelled = from_table(table, [f"time@{spec}", AREA])
    begins = start(table.time).astype("datetime64[us]")
    same(labelled, table.groupby([begins, AREA]).size())
    mode = labelled.modes[0]
    assert (mode.name, mode.kind) == (f"time@{spec}", "time")
    if not shift:
        same_bin = from_table(table, ["time", AREA], bins={"time": spec})
        assert same_bin.modes[0].labels[0] == begins.min()
    if not spec.endswith(("mo", "y")):
        assert len(np.unique(np.diff(mode.labels))) == 1


def test_gaps_in_time_are_rows():
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 31)]
    labelled = from_table(pd.DataFrame({"day": days, "what": list("aba")}), "day,what")
    assert labelled.shape == (31, 2)
    assert "28 of the 31 periods of 'day'" in labelled.notes[0]


def test_cycles():
    labelled = from_table(TABLE, ["time@hour", "time@weekday", "day@month", "clock"])
    assert labelled.shape == (24, 7, 12, 24)
    assert {mode.kind for mode in labelled.modes} == {"cycle"}
    assert labelled.modes[1].text() == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert labelled.modes[2].text()[1] == "Feb"
    dense = labelled.tensor.to_dense()
    hours = TABLE.time.dt.hour.value_counts().reindex(range(24), fill_value=0)
    weekdays = TABLE.time.dt.day_of_week.value_counts().reindex(range(7), fill_value=0)
    np.testing.assert_array_equal(dense.sum((1, 2, 3)), hours)
    np.testing.assert_array_equal(dense.sum((0, 2, 3)), weekdays)
    assert dense.sum((0, 1, 3))[[1, 2]].sum() == N


def test_times_of_day():
    mode = from_table(TABLE, ["clock@15min", AREA]).modes[0]
    assert len(mode) == 96
    assert mode.text()[:3] == ["00:00", "00:15", "00:30"]


def test_a_period_is_chosen_for_times_without_a_bin():
    labelled = from_table(TABLE, ["time", AREA])
    assert 50 <= labelled.shape[0] <= 400
    assert "periods of '6h'" in labelled.notes[0]


def test_quantiles():
    labelled = from_table(TABLE, ["amount@4q", "points@5q"])
    dense = labelled.tensor.to_dense()
    np.testing.assert_array_equal(dense.sum(1), [N / 4] * 4)
    codes = pd.qcut(TABLE.points, 5, labels=False)
    np.testing.assert_array_equal(dense.sum(0), codes.value_counts().sort_index())
    assert [mode.kind for mode in labelled.modes] == ["number", "number"]
    assert labelled.modes[1].text()[0].startswith("-5 to ")


def test_quantiles_of_values_that_repeat():
    table = pd.DataFrame({"x": [0.0] * 80 + [1.0, 2.0] * 10, "k": ["a", "b"] * 50})
    labelled = from_table(table, ["x@10q", "k"])
    assert labelled.modes[0].text()[0] == "0"
    assert labelled.tensor.to_dense().sum(1).tolist() == [80, 10, 10]
    assert "3 bins instead of 10" in labelled.notes[0]


def test_equal_ranges():
    labelled = from_table(TABLE, ["points", AREA], bins={"points": 11})
    codes = pd.cut(TABLE.points, np.linspace(-5, 49, 12), right=False, labels=False)
    expected = codes.fillna(10).value_counts().reindex(range(11), fill_value=0)
    np.testing.assert_array_equal(labelled.tensor.to_dense().sum(1), expected)
    few = pd.DataFrame({"x": [0.0, 1.0, 10.0], "k": ["a", "b", "a"]})
    assert from_table(few, ["x@5", "k"]).tensor.to_dense().sum(1).tolist() == [2, 0, 0, 0, 1]


# Labels.


def test_labels_come_in_natural_order():
    labelled = from_table(TABLE, [AREA, "id", "flag"])
    assert labelled.modes[0].text() == ["<b>", "o'hare", "zone 9", "zone 10"]
    assert labelled.modes[1].labels.tolist() == [-4, 3, 7, 10**15]
    assert labelled.modes[2].text() == ["false", "true"]
    texts = pd.DataFrame({"a": ["10", "9", "-1.5"], "b": ["Wed", "Mon", "Tue"]})
    numbers, days = from_table(texts, "a,b").modes
    assert numbers.text() == ["-1.5", "9", "10"]
    assert (days.text(), days.kind) == (["Mon", "Tue", "Wed"], "cycle")


@pytest.mark.parametrize(
    ("name", "values", "size"),
    [
        ("hour", [0, 5], 24),
        ("weekday", [0, 3], 7),
        ("day_of_week", [1, 7], 7),
        ("month", [1, 4], 12),
    ],
)
def test_numbers_of_a_cycle_are_known_by_name(name, values, size):
    mode = from_table(pd.DataFrame({name: values, "b": [1, 2]}), [name, "b"]).modes[0]
    assert (mode.kind, len(mode)) == ("cycle", size)
    plain = from_table(pd.DataFrame({name: [3, 99], "b": [1, 2]}), [name, "b"]).modes[0]
    assert (plain.kind, len(plain)) == ("number", 2)


def test_whole_floats_are_whole_labels():
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.5, 0.25, 0.5]})
    labelled = from_table(table, "a,b", allow_lost_rows=True)
    assert labelled.modes[0].labels.tolist() == [1, 2]
    assert labelled.modes[1].labels.tolist() == [0.25, 0.5]


def test_the_most_frequent_labels():
    table = pd.DataFrame({"k": [*"aaabbbcd", "(other)"], "b": [1, 2] * 4 + [1]})
    gathered = from_table(table, "k,b", top={"k": 2})
    assert gathered.modes[0].text() == ["a", "b", "(other)"]
    assert gathered.tensor.to_dense().sum(1).tolist() == [3, 3, 3]
    assert "3 rows are gathered in '(other)'" in gathered.notes[0]
    dropped = from_table(table, "k,b", top={"k": 2}, rest="drop")
    assert dropped.modes[0].text() == ["a", "b"]
    assert "3 of 9 rows are left out: 'k' is not among the 2 most frequent" in dropped.notes[0]
    clashing = from_table(table, "k,b", top={"k": 2}, where="k in ('(other)', 'a', 'd')")
    assert clashing.modes[0].text() == ["(other)", "a", "((other))"]
    assert from_table(table, "k,b", top={"k": 99}).shape == (5, 2)


# Rows that cannot be used.


def test_rows_left_out_are_counted_and_logged(caplog):
    table = TABLE.copy()
    table.loc[:2, AREA] = None
    table.loc[3, AREA] = ""
    table.loc[4:8, "amount"] = [np.nan, np.inf, -np.inf, np.nan, 0.0]
    table.loc[1, "time"] = pd.NaT
    with caplog.at_level(logging.INFO, "smartcpd"):
        labelled = from_table(table, [AREA, "time@1d", "time@hour"], "amount", "count")
    assert labelled.notes == (
        f"4 of {N:,} rows are left out: {AREA!r} is missing or empty.",
        f"1 of {N:,} rows is left out: 'time' is missing or infinite.",
        f"4 of {N:,} rows are left out: 'amount' is missing, not a number or infinite.",
    )
    assert [record.getMessage() for record in caplog.records] == list(labelled.notes)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert labelled.tensor.values.sum() == N - 8


def test_many_rows_left_out_are_a_warning_and_too_many_an_error(caplog):
    table = TABLE.assign(id=TABLE.id.astype("Int64").mask(np.arange(N) % 50 == 0))
    from_table(table, ["id", "flag"])
    first, *others = caplog.records
    assert first.getMessage() == (
        "Warning: 40 of 2,000 rows (2 %) cannot be used and are left out."
    )
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert "'id' is missing" in others[0].getMessage()
    table = TABLE.assign(id=TABLE.id.astype("Int64").mask(np.arange(N) % 4 == 0))
    sentence = r"500 of 2,000 rows \(25 %\) cannot be used.*'id' is missing.*allow_lost_rows=True"
    refused(sentence, table, ["id", "flag"], error=InvalidDataError)
    kept = from_table(table, ["id", "flag"], allow_lost_rows=True)
    assert kept.tensor.values.sum() == 1500
    # What the user wants out is not lost.
    from_table(TABLE, [AREA, "flag"], top={AREA: 2}, rest="drop")


def test_labels_of_rows_left_out_are_no_rows():
    table = pd.DataFrame({"a": ["x", "y", "z"], "n": [5, 6, 9], "v": [1.0, 2.0, np.nan]})
    labelled = from_table(table, "a,n", "v")
    assert labelled.modes[0].text() == ["x", "y"]
    assert labelled.modes[1].text() == ["5", "6"]


def test_text_is_read_as_dates_or_numbers_where_a_bin_asks_for_it():
    table = pd.DataFrame(
        {"when": ["2024-01-01", "2024-01-02", "soon"], "x": ["1", "2.5", "?"], "v": ["1", "", "3"]}
    )
    labelled = from_table(table, ["when@1d", "x@2"], allow_lost_rows=True)
    assert labelled.shape == (2, 2)
    assert "1 of 3 rows is left out: 'when' is missing, or cannot be read (1 not a date" in str(
        labelled.notes
    )
    assert "1 of 3 rows is left out: 'x' is missing" in str(labelled.notes)
    notes = from_table(table, ["when", "x"], "v", allow_lost_rows=True).notes
    assert any("'v' is missing" in note for note in notes)


def test_times_with_zones_are_taken_in_utc():
    table = TABLE.assign(time=TABLE.time.dt.tz_localize("Asia/Tokyo"))
    labelled = from_table(table, ["time@hour", AREA])
    shifted = from_table(TABLE.assign(time=TABLE.time - pd.Timedelta("9h")), ["time@hour", AREA])
    np.testing.assert_array_equal(labelled.tensor.to_dense(), shifted.tensor.to_dense())
    assert "UTC" in labelled.notes[0]


# Where tables come from.


def stored(folder: Path, kind: str):
    plain = TABLE[["day", AREA, "points"]]
    if kind.startswith(".csv") or kind == ".tsv":
        path = folder / f"events{kind}"
        plain.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
        return path
    if kind == ".parquet":
        plain.to_parquet(folder / "it's [1].parquet")
        return str(folder / "it's [1].parquet")
    if kind in ("folder", "pattern"):
        for year in (0, 1):
            (folder / f"y={year}").mkdir()
            plain[year::2].to_parquet(folder / f"y={year}" / "part.parquet")
        (folder / "_SUCCESS").touch()
        return folder if kind == "folder" else folder / "*" / "*.parquet"
    arrow = pa.Table.from_pandas(plain, preserve_index=False)
    return {
        "pandas": lambda: plain,
        "polars": lambda: pl.from_pandas(plain),
        "lazy": lambda: pl.from_pandas(plain).lazy(),
        "arrow": lambda: arrow,
        "dataset": lambda: pyarrow.dataset.dataset(arrow),
        "relation": lambda: CONNECTION.from_arrow(arrow),
    }[kind]()


KINDS = [".csv", ".csv.gz", ".tsv", ".parquet", "folder", "pattern"]
KINDS += ["pandas", "polars", "lazy", "arrow", "dataset", "relation"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(kind, tmp_path):
    expected = TABLE.groupby(["day", AREA])["points"].sum()
    expected.index = expected.index.set_levels(
        pd.to_datetime(expected.index.levels[0]).astype("datetime64[us]"), level=0
    )
    labelled = from_table(stored(tmp_path, kind), ["day", AREA], "points")
    same(labelled, expected)
    assert labelled.modes[0].kind == "time"


def test_zstandard(tmp_path):
    path = tmp_path / "events.csv.zst"
    duckdb.sql(f"COPY (SELECT 'x' || i % 3 AS a, i % 2 AS b FROM range(6) t(i)) TO '{path}'")
    assert from_table(path, "a,b").shape == (3, 2)


def test_a_relation_leaves_nothing_behind():
    connection = duckdb.connect()
    relation = connection.sql("SELECT i % 3 AS a, 'x' || i % 4 AS b FROM range(100) t(i)")
    assert from_table(relation, "a,b", top={"b": 2}).shape == (3, 3)
    assert connection.sql("SELECT * FROM duckdb_tables()").fetchall() == []
    assert connection.sql("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall() == []


def test_the_table_is_not_changed():
    before = TABLE.copy()
    from_table(TABLE, [AREA, "points@5q", "time"], "amount")
    pd.testing.assert_frame_equal(TABLE, before)


def test_a_condition():
    where = f"\"{AREA.replace(chr(34), chr(34) * 2)}\" <> '<b>' AND points > 0 -- a comment"
    kept = TABLE[(TABLE[AREA] != "<b>") & (TABLE.points > 0)]
    same(from_table(TABLE, [AREA, "id"], where=where), kept.groupby([AREA, "id"]).size())


@pytest.mark.parametrize("many", [0, 1 << 62], ids=["sorted", "grouped"])
def test_less_memory_than_the_table_needs(tmp_path, monkeypatch, many):
    monkeypatch.setattr(counting, "MANY", many)
    path = tmp_path / "wide.parquet"
    duckdb.sql(
        "COPY (SELECT hash(i) % 200000 AS a, hash(i + 1) % 1000 AS b FROM range(1000000) t(i)) "
        f"TO '{path}'"
    )
    labelled = from_table(path, "a,b", max_memory="200MB")
    assert labelled.tensor.values.sum() == 1_000_000


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize(
    ("value", "agg"),
    [(None, "count"), ("points", "sum"), ("amount", "sum"), ("amount", "mean"), ("points", "mean")],
)
def test_sorting_finds_the_same_as_a_group_by(monkeypatch, value, agg, arrow, holes):
    table = TABLE.copy()
    if holes:
        table.loc[::7, AREA] = None
        table.loc[::5, "amount"] = np.nan
        table["points"] = table.points.astype("Int64").mask(np.arange(N) % 3 == 0)
    monkeypatch.setattr(sorting, "PIECE", 50)
    if not arrow:
        monkeypatch.setattr(fetching.importlib.util, "find_spec", lambda name: None)
    found = []
    for many in (0, 1 << 62):
        monkeypatch.setattr(counting, "MANY", many)
        found.append(from_table(table, [AREA, "id", "day"], value, agg, allow_lost_rows=True))
    by_sorting, by_grouping = found
    assert by_sorting.notes == by_grouping.notes
    assert by_sorting.tensor.values.dtype == by_grouping.tensor.values.dtype
    np.testing.assert_array_equal(by_sorting.tensor.indices, by_grouping.tensor.indices)
    np.testing.assert_allclose(by_sorting.tensor.values, by_grouping.tensor.values, rtol=1e-15)


def test_sorted_sums_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    word = np.sort(rng.integers(0, 40, 10_000)).astype(np.int32)
    values = rng.normal(size=word.size) * 10.0 ** rng.integers(-12, 12, word.size)
    exact = [math.fsum(values[word == w]) for w in range(40)]
    largest = np.abs(values).max()
    for _ in range(3):
        order = rng.permutation(word.size)
        found = sorting.summed(word[order], values[order], largest, complete=True)
        np.testing.assert_array_equal(found["rows"], np.bincount(word))
        np.testing.assert_array_equal(found["value"], exact)


@pytest.mark.parametrize("end", ["infinity", "-infinity"])
def test_infinite_dates_of_parquet_are_left_out(tmp_path, end):
    path = tmp_path / "dates.parquet"
    query = (
        "SELECT DATE '2024-01-01' + CAST(i % 9 AS INTEGER) AS day, i % 4 AS n FROM range(99) t(i)"
    )
    duckdb.sql(f"COPY ({query} UNION ALL SELECT DATE '{end}', 1) TO '{path}'")
    labelled = from_table(path, "day,n")
    assert labelled.shape == (9, 4)
    assert labelled.notes == ("1 of 100 rows is left out: 'day' is missing or infinite.",)


def test_malformed_rows_of_text_are_reported(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"2024-01-{i % 28 + 1:02d},{i % 7},a{i % 5}" for i in range(30_000)]
    lines += ["2024-01-01,zzz,b", "2024-01-01", "2024-01-02,3,b,more,more"]
    path.write_text("\n".join(["date,n,s", *lines]))
    labelled = from_table(path, "date,n,s")
    assert labelled.tensor.values.sum() == 30_000
    text = " ".join(labelled.notes)
    assert "(1 not a number, the first on line 30,002: 'zzz')" in text
    assert "1 of 30,002 rows is left out: 's' is missing" in text
    assert "too many columns (the first on line 30004" in text


def test_a_column_that_becomes_text_further_down_is_text(tmp_path):
    path = tmp_path / "late.csv"
    numbers = [f"{i % 9},{i % 2}" for i in range(30_000)]
    path.write_text("\n".join(["code,b", *numbers, *(["X1,0"] * 500)]))
    labelled = from_table(path, "code,b")
    assert labelled.tensor.values.sum() == 30_500
    assert labelled.modes[0].text()[-1] == "X1"
    assert "'code' is read as text, since 500 of 30,500 values are not numbers" in labelled.notes[0]


def test_a_header_above_text_only(tmp_path):
    path = tmp_path / "text.csv"
    path.write_text("who,what\nann,tea\nbob,tea\nann,rye\n")
    assert from_table(path, "who,what").tensor.nnz == 3


def test_sixteen_bits_a_character(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes("who,n\nann,1\nbøb,2\nann,3\n".encode("utf-16"))
    assert from_table(path, "who,n").modes[0].text() == ["ann", "bøb"]


# What is refused.

CUT = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(99_999)))[:100_000]


def refused(sentence, *args, error=InvalidParameterError, **kwargs):
    with pytest.raises(error, match=sentence) as caught:
        from_table(*args, **kwargs)
    assert "\n" not in str(caught.value).replace(str(kwargs.get("where")), "")


@pytest.mark.parametrize(
    ("sentence", "modes", "options"),
    [
        ("no column 'ponts' in the DataFrame. Did you mean 'points'", ["ponts", "id"], {}),
        ("no column 'v'", ["flag", "id"], {"value": "v"}),
        ("'id' is named twice in modes", ["id", "id"], {}),
        ("at least two modes; got 1", "id", {}),
        ("modes must be a list", 5, {}),
        ("agg must be one of", ["id", "flag"], {"agg": "median"}),
        ("agg='mean' needs a column", ["id", "flag"], {"agg": "mean"}),
        ("rest must be", ["id", "flag"], {"rest": "keep"}),
        ("max_labels must be", ["id", "flag"], {"max_labels": 0}),
        ("max_memory='lots' is not", ["id", "flag"], {"max_memory": "lots"}),
        ("bins names 'day', which is not one", ["id", "flag"], {"bins": {"day": "1w"}}),
        ("bins must be a dict", ["id", "flag"], {"bins": "1w"}),
        ("'time@1w' has a bin of its own", ["id", "time@1w"], {"bins": {"time": "1d"}}),
        (
            "'fortnight' of mode 'time' is not understood",
            ["id", "time"],
            {"bins": {"time": "fortnight"}},
        ),
        ("asks for 1 bins", ["id", "points@1"], {}),
        ("needs numbers, and column 'time'", ["id", "time@20q"], {}),
        ("dates without times", ["id", "day@1h"], {}),
        ("no hour of the day", ["id", "day@hour"], {}),
        ("which '7min' does not divide", ["id", "clock@7min"], {}),
        ("top={'id': 0} must be", ["id", "flag"], {"top": {"id": 0}}),
        ("'day' is binned", ["id", "day"], {"top": {"day": 3}}),
        ("where='points >' is not an SQL condition", ["id", "flag"], {"where": "points >"}),
        ("'nope = 1' is not.*columns are 'time', 'day'", ["id", "flag"], {"where": "nope = 1"}),
        ("one condition, without", ["id", "flag"], {"where": "1=1); DROP TABLE x; SELECT (1"}),
    ],
)
def test_parameters_that_make_no_sense(sentence, modes, options):
    refused(sentence, TABLE, modes, **options)


@pytest.mark.parametrize(
    ("sentence", "modes", "options"),
    [
        ("fulfils where='points > 99'", ["id", "flag"], {"where": "points > 99"}),
        ("'id' has one label only, '3'", ["id", "flag"], {"where": "id = 3"}),
        ("'amount' holds real numbers, more than 100 different", ["id", "amount"], {}),
        (
            "'points' would have 55 labels, more than max_labels=9",
            ["points", "id"],
            {"max_labels": 9},
        ),
        (f"{AREA!r} would have 4 labels", [AREA, "flag"], {"max_labels": 3}),
        ("'day' would have 20 rows, from 2024-02-20 to", ["day", "id"], {"max_labels": 9}),
        ("'points' holds numbers from -5 to 49, which are no dates", ["id", "points@1w"], {}),
        (
            "'time' holds dates with times, which cannot be a value",
            ["id", "flag"],
            {"value": "time"},
        ),
        ("one value only, 1, so mode 'points@5'", ["id", "points@5"], {"where": "points = 1"}),
    ],
)
def test_data_that_make_no_tensor(sentence, modes, options):
    refused(sentence, TABLE, modes, error=InvalidDataError, **options)


def test_two_million_labels():
    connection = duckdb.connect()
    relation = connection.sql("SELECT i AS a, i % 2 AS b FROM range(2000000) t(i)")
    refused("'a' would have 2,000,000 labels", relation, "a,b", error=InvalidDataError)


def test_tables_that_are_none():
    refused("A table must be a path", [1, 2], "a,b", error=InvalidDataError)
    refused("no row in the DataFrame", TABLE[:0], "id,flag", error=InvalidDataError)
    lists = pd.DataFrame({"a": [[1], [2]], "b": [1, 2]})
    refused("cannot label the rows", lists, "a,b", error=InvalidDataError)
    nothing = TABLE.assign(amount=np.nan)
    refused("No row.*2,000 of 2,000", nothing, "id,flag", "amount", error=InvalidDataError)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b\n", "no row in"),
        ("binary.csv", bytes(range(256)) * 20, "holds binary data"),
        ("cut.csv.gz", CUT, "GZIP|gzip"),
        ("no.csv.gz", b"a,b\n1,2\n", "not a whole gzip file"),
        ("text.parquet", b"a,b\n1,2\n", "not a Parquet file"),
        ("cut.parquet", b"PAR1" + bytes(100), "Reading .* failed"),
        ("book.xlsx", b"PK", "cannot be read as a workbook"),
        ("model.pkl", b"x", "could run code"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # no bytes: they differ by the hour
)
def test_files_that_are_no_tables(name, content, sentence, tmp_path):
    (tmp_path / name).write_bytes(content)
    refused(sentence, tmp_path / name, "a,b", error=InvalidDataError)


def test_files_that_are_not_there(tmp_path):
    refused("no file or folder", tmp_path / "none.csv", "a,b", error=InvalidDataError)
    refused("No file matches", tmp_path / "*.csv", "a,b", error=InvalidDataError)
    refused("holds no CSV", tmp_path, "a,b", error=InvalidDataError)
    refused("cannot be fetched", "http://127.0.0.1:9/x.csv", "a,b", error=InvalidDataError)
    refused("is not fetched", "s3://bucket/x.csv", "a,b", error=InvalidDataError)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    TABLE[["id"]].to_parquet(tmp_path / "b.parquet")
    refused("several formats", tmp_path, "a,b", error=InvalidDataError)


def test_polars_without_arrow(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(r"smartcpd\[polars\]", pl.DataFrame({"a": [1]}), "a,b", error=MissingExtraError)


# As a part of the package.


@pytest.mark.slow
def test_duckdb_is_imported_when_needed():
    code = "import sys, smartcpd; assert 'duckdb' not in sys.modules; smartcpd.from_table"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_chicago():
    folder = os.environ.get("SMARTCPD_DATA")
    if folder is None:
        pytest.skip("SMARTCPD_DATA does not say where the data is")
    path = Path(folder) / "chicago_crime_2022.csv.gz"
    labelled = from_table(path, "date,hour,community_area,primary_type")
    assert labelled.shape == (334, 24, 77, 31)
    assert labelled.tensor.nnz == 202_313
    assert labelled.tensor.values.sum() == 215_551
    assert [mode.kind for mode in labelled.modes] == ["time", "cycle", "number", "category"]


def test_a_model_keeps_the_names():
    labelled = from_table(TABLE, [AREA, "time@weekday", "flag"])
    model = smartcpd.decompose(labelled, 2, "poisson", max_epochs=2, random_state=0)
    assert model.modes == labelled.modes
