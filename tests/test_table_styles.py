"""Tables in the styles of portals, logs and spreadsheets: read exactly, or refused in words."""

import numpy as np
import pytest

from smartcpd import from_table
from smartcpd._app.inspection import check_table
from smartcpd.errors import InvalidDataError, InvalidParameterError


@pytest.fixture
def write(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode(encoding))
        return str(path)

    return write


def rows(*columns):
    return "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


def labels(X, mode=0):
    return X.modes[mode].text()


def test_codes_keep_their_zeros_and_parts_of_dates_are_numbers(write):
    text = "FIPS,month,n\n" + rows(["01", "02", "10"] * 2, ["01", "02", "12"] * 2, range(6))
    X = from_table(write(text), ["FIPS", "month"], "n")
    assert labels(X) == ["01", "02", "10"]
    assert labels(X, 1)[:2] == ["Jan", "Feb"]
    assert X.tensor.values.sum() == 15


@pytest.mark.parametrize(
    ("dates", "first"),
    [
        (["1 février 2021", "14 août 2021", "3 décembre 2021"], "2021-02-01"),
        (["3. März 2021", "4. Mai 2021", "9. Dezember 2021"], "2021-03-03"),
        (["5 de enero de 2021", "6 de agosto de 2021"], "2021-01-05"),
        (["2021年1月5日", "2021年12月31日"], "2021-01-05"),
        (["05-mai-2021", "07-okt-2021"], "2021-05-05"),
    ],
)
def test_dates_in_other_languages(write, dates, first):
    X = from_table(write("when,what\n" + rows(dates * 2, "ab" * len(dates))), ["when", "what"])
    assert labels(X)[0] == first
    assert X.tensor.values.sum() == 2 * len(dates)


def test_the_hour_that_ends_a_day(write):
    hours = [f"{h:02d}:00" for h in range(1, 25)]
    X = from_table(write("hour,what,n\n" + rows(hours * 2, "ab" * 24, range(48))), "hour,what", "n")
    assert X.shape == (24, 2)
    assert X.tensor.values.sum() == sum(range(48))


def test_durations_are_values_in_seconds(write):
    text = "who,race,time\n" + rows("abab", "xxyy", ["0:00:10", "0:01:00", "1:00:00", "26:00:01"])
    X = from_table(write(text), ["who", "race"], "time")
    assert X.tensor.values.sum() == 10 + 60 + 3600 + 26 * 3600 + 1
    assert any("in seconds" in note for note in X.notes)


def test_columns_that_blanks_line_up(write):
    lines = ["STATION  YEAR   RAIN", "A1       2001      5", "A2       2001     17"]
    lines += [f"A{i}       {2000 + i}      {i}" for i in (1, 2, 3)]
    X = from_table(write("\n".join(lines) + "\n"), ["STATION", "YEAR"], "RAIN")
    assert X.tensor.values.sum() == 5 + 17 + 6


def test_names_over_several_lines_and_years_as_names(write):
    text = 'geo,"rate\nin 2015",2016,2017,2018\n' + rows("abc", "123", "456", ":7:", "89:")
    X = from_table(write(text), ["geo", "year"], melt={"year": "2016:2018"})
    assert X.tensor.values.sum() == 15 + 7 + 17
    assert "rate in 2015" in [column["name"] for column in check_table(write(text))["columns"]]


@pytest.mark.parametrize("encoding", ["cp1251", "shift_jis", "gb18030"])
def test_an_encoding_that_is_not_western_is_asked_for(write, encoding):
    cities = ["Москва", "Казань"] if encoding == "cp1251" else ["東京", "大阪"]
    path = write("city,what\n" + rows(cities * 9, "ab" * 9), encoding)
    with pytest.raises(InvalidDataError, match="encoding='cp1251'"):
        from_table(path, ["city", "what"])
    assert set(labels(from_table(path, ["city", "what"], encoding=encoding))) == set(cities)


def test_what_a_table_of_totals_is_about(write):
    text = "Kanton,Jahr,Einwohner\n" + rows(
        ["ZH", "BE"] * 9, np.repeat(range(9), 2), range(100, 118)
    )
    found = check_table(write(text))
    assert found["command"].endswith("--modes Kanton,Jahr --value Einwohner --rank 3")


def test_times_of_day_are_suggested(write):
    text = "at,line\n" + rows([f"{h:02d}:15" for h in range(24)] * 2, "ab" * 24)
    assert "--modes at@1h,line" in check_table(write(text))["command"]


def test_coordinates_are_one_mode_of_cells(write):
    north, east = [41.851, 41.859, 41.861, -0.001], [-87.62, -87.619, -87.62, 0.0]
    path = write("lat,lon,what\n" + rows(north, east, "abab"))
    X = from_table(path, "what,lat+lon", bins={"lat+lon": "0.01"})
    assert sorted(labels(X, 1)) == ["-0.005, 0.005", "41.855, -87.615", "41.865, -87.615"]
    assert X.tensor.values.sum() == 4
    assert from_table(path, "what,lat+lon@0.01").shape == X.shape
    with pytest.raises(InvalidParameterError, match="width of its cells"):
        from_table(path, ["what", "lat+lon"])
