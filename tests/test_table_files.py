"""Tables as people have them: each read exactly, or refused with the option that helps."""

import bz2
import csv as quoting
import datetime as dt
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
from csv import writer
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest

from smartcpd import from_table
from smartcpd._app.inspection import check_table
from smartcpd.errors import InvalidDataError, SmartCPDError

N = 240
PLACES = ["Ávila", "Bern", "Córdoba", "Łódź"]
WESTERN = ["Ávila", "Bern", "Córdoba", "Zürich"]


def truth(n=N, places=PLACES, hours=True, start="2014-03-20"):
    """A table of events whose days go over several months, so that formats can be told apart."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 80 * 1440, n) * 60
    when = pd.Timestamp(start) + pd.to_timedelta(seconds, "s")
    if not hours:
        when = when.floor("D")
    cents = rng.integers(-2_000_000, 90_000_000, n)
    return pd.DataFrame(
        {"when": when, "place": rng.choice(places, n), "cents": cents, "n": rng.integers(0, 9, n)}
    )


TABLE = truth()
DAYS = truth(hours=False)


def expected(table, value=None):
    """The sums or counts by day and place, as pandas has them."""
    groups = table.groupby([table["when"].dt.floor("D").dt.strftime("%Y-%m-%d"), "place"])
    found = groups.size() if value is None else groups[value].sum()
    return found[found != 0].to_dict()


def read(source, modes="when@1d,place", value=None, **options):
    """The same from a tensor."""
    labelled = from_table(source, modes, value, absent="zero", **options)
    X = labelled.tensor
    texts = [[str(label)[:10] for label in labelled.modes[0].labels], labelled.modes[1].text()]
    rows = zip(*(np.asarray(t)[i] for t, i in zip(texts, X.indices, strict=True)), strict=True)
    return {tuple(map(str, row)): v for row, v in zip(rows, X.values.tolist(), strict=True) if v}


def same(found, wanted):
    assert set(found) == set(wanted)
    np.testing.assert_allclose([found[key] for key in wanted], list(wanted.values()), rtol=1e-12)


def csv(table, sep=",", **options):
    return table.to_csv(index=False, sep=sep, **options)


# Dates x numbers x encodings x delimiters x line ends x headers x defects.

DATE_FORMATS = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S.%f0",
    "%Y/%m/%d %H:%M",
    "%Y.%m.%d",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S%p",
    "%-m/%-d/%Y %-H:%M",
    "%-m/%-d/%y %-H:%M",
    "%m/%d/%Y, %I:%M:%S %p",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%d-%b-%Y",
    "%d-%b-%y %H:%M",
    "%d %B %Y",
    "%d%b%Y",
    "%d/%b/%Y:%H:%M:%S +0000",
    "%B %d, %Y",
    "%b %d %Y %I:%M%p",
    "%A, %B %d, %Y",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%a %b %d %H:%M:%S %Y",
    "%Y%m%d",
    "%Y%m%d%H%M%S",
    "%Y%m%dT%H%M%SZ",
    "%Y-%b-%d",
    "%d. %B %Y",
    "[%d/%b/%Y:%H:%M:%S]",
]


def formatted(cents, point=".", comma=",", money="{}", digits=2):
    whole, rest = divmod(abs(cents), 100)
    text = f"{whole:,}".replace(",", "#").replace("#", comma)
    text = f"{text}{point}{rest:0{digits}d}"
    return money.format(f"-{text}" if cents < 0 else text)


NUMBER_FORMATS = {
    "plain": lambda c: f"{c / 100:.2f}",
    "thousands": formatted,
    "blanks": lambda c: f"  {formatted(c)} ",
    "decimal comma": lambda c: formatted(c, ",", "."),
    "decimal comma only": lambda c: formatted(c, ",", ""),
    "spaces": lambda c: formatted(c, ",", " "),
    "narrow spaces": lambda c: formatted(c, ",", "\u202f"),
    "apostrophes": lambda c: formatted(c, ".", "'"),
    "dollars": lambda c: formatted(c, money="${}").replace("$-", "-$"),
    "euros": lambda c: formatted(c, ",", ".", "{} €"),
    "pounds": lambda c: formatted(c, money="£{}"),
    "code": lambda c: formatted(c, money="USD {}"),
    "brackets": lambda c: f"({formatted(-c)})" if c < 0 else formatted(c),
    "trailing sign": lambda c: f"{formatted(-c)}-" if c < 0 else formatted(c),
    "percent": lambda c: f"{formatted(c)}%",
    "exponent": lambda c: f"{c / 100:.12e}",
}


ENCODINGS = ["utf-8", "cp1252", "utf-16", "latin-1", "utf-8-sig", "utf-16-le", "utf-16-be"]
DELIMITERS = [",", ";", "\t", "|", " ", "^", "~"]
ENDS = ["\n", "\r\n", "\r"]
WORDS = ["", "NA", "N/A", "null", "NULL", "-", "nan", "#N/A", ".", "?"]
"""What stands for a missing number."""
NONE = ["", " ", "nan", "NaN", "NA", "null", "N/A"]
"""What stands for a missing label."""


def joined(rows, sep, quoting=quoting.QUOTE_MINIMAL):
    out = io.StringIO()
    writer(out, delimiter=sep, lineterminator="\0", quoting=quoting).writerows(rows)
    return out.getvalue().removesuffix("\0").split("\0")


def with_comments(rows, sep):
    lines = joined(rows, sep)
    return ["# one", *lines[:50], "# two", *lines[50:]]


DEFECTS = {
    "none": joined,
    "title": lambda rows, sep: ["Sales report", "", *joined(rows, sep)],
    "title in empty fields": lambda rows, sep: [
        "Sales report" + 3 * sep,
        3 * sep,
        *joined(rows, sep),
    ],
    "title of two": lambda rows, sep: [f"Report{sep}2014", "by hand", *joined(rows, sep)],
    "comments": lambda rows, sep: ["# from the archive", "# all days", *joined(rows, sep)],
    "header in a comment": lambda rows, sep: ["#" + joined(rows, sep)[0], *joined(rows, sep)[1:]],
    "comments within": with_comments,
    "delimiter at the end": lambda rows, sep: [line + sep for line in joined(rows, sep)],
    "delimiter at the end of rows": lambda rows, sep: [
        line + sep * (i > 0) for i, line in enumerate(joined(rows, sep))
    ],
    "short rows": lambda rows, sep: joined([[*rows[0], "remark", "flag"], *rows[1:]], sep),
    "blank lines": lambda rows, sep: [x for line in joined(rows, sep) for x in (line, "")],
    "row names of R": lambda rows, sep: joined(
        [rows[0], *([f"r{i}", *row] for i, row in enumerate(rows[1:]))], sep
    ),
    "quotes everywhere": lambda rows, sep: joined(rows, sep, quoting.QUOTE_ALL),
    "blanks": lambda rows, sep: joined(
        [[f" {x} " for x in rows[0]], *([a, f" {b}  ", c] for a, b, c in rows[1:])], sep
    ),
    "an empty name": lambda rows, sep: joined(
        [[*row, str(i) * (i > 0)] for i, row in enumerate(rows)], sep
    ),
    "repeated names": lambda rows, sep: joined([[*row, row[1]] for row in rows], sep),
    "names but for case": lambda rows, sep: joined([[*row, row[1].upper()] for row in rows], sep),
    "line breaks in values": lambda rows, sep: joined(
        [[*row, f"two\nlines{sep} here" if i else "remark"] for i, row in enumerate(rows)], sep
    ),
    "no header": lambda rows, sep: joined(rows[1:], sep),
}


@dataclass
class Case:
    """One file, and what it holds."""

    number: int

    def pick(self, options, stride):
        """An option; numbers of options have few factors in common, so that all pairs come up."""
        options = list(options)
        return options[(self.number * stride + self.number // len(options)) % len(options)]

    @property
    def encoding(self):
        return self.pick(ENCODINGS, 1)

    @property
    def table(self):
        western = self.encoding in ("cp1252", "latin-1")
        places = [*WESTERN, "Straße – “süß”"] if self.encoding == "cp1252" else WESTERN
        return truth(places=places if western else PLACES)

    @property
    def numerals(self):
        fitting = {
            name: write
            for name, write in NUMBER_FORMATS.items()
            if _encodes(write(123_456_789), self.encoding)
        }
        return self.pick(fitting.items(), 1)

    def rows(self):
        """Header and rows as text, and the events that are to be found in them."""
        table, form = self.table, self.pick(DATE_FORMATS, 1)
        name, number = self.numerals
        word, none = self.pick(WORDS, 3), self.pick(NONE, 2)
        rows = [["when", "place", "cents"]]
        kept = []
        for i, (when, place, cents, _) in enumerate(table.itertuples(index=False)):
            kept.append(i % 11 != 0 and i % 60 != 1)
            value = word if i % 11 == 0 else number(int(cents))
            rows.append([f"{when:{form}}", none if i % 60 == 1 else place, value])
        values = table.cents / (10_000 if name == "percent" else 100)
        return rows, table.assign(cents=values)[kept]

    def write(self, folder):
        rows, kept = self.rows()
        defect = self.pick(DEFECTS, 5)
        lines = DEFECTS[defect](rows, self.pick(DELIMITERS, 3))
        end = "\n" if defect == "line breaks in values" else self.pick(ENDS, 1)
        path = folder / "table.csv"
        path.write_bytes((end.join(lines) + end * (self.number % 2)).encode(self.encoding))
        return path, kept, defect

    def __str__(self):
        parts = (self.encoding, self.pick(DATE_FORMATS, 1), self.numerals[0])
        return " ".join([*parts, repr(self.pick(DELIMITERS, 3)), self.pick(DEFECTS, 5)])


def _encodes(text, encoding):
    try:
        return bool(text.encode(encoding))
    except UnicodeEncodeError:
        return False


CASES = [Case(i) for i in range(64)]


@pytest.mark.parametrize(
    "case",
    [*CASES[:24], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[24:])],
    ids=str,
)
def test_a_file_is_read_exactly(case, tmp_path):
    path, kept, defect = case.write(tmp_path)
    names = (
        ["column0", "column1", "column2"] if defect == "no header" else ["when", "place", "cents"]
    )
    same(read(path, f"{names[0]}@1d,{names[1]}", names[2]), expected(kept, "cents"))


EPOCHS = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}


def written(table, form):
    return table.assign(when=[f"{when:{form}}" for when in table.when])


@pytest.mark.parametrize("unit", EPOCHS)
def test_times_counted_from_1970(unit, tmp_path):
    counts = TABLE.when.astype("datetime64[ns]").astype("int64") // EPOCHS[unit]
    table = TABLE.assign(when=counts)[["when", "place"]]
    (tmp_path / "t.csv").write_text(csv(table))
    same(read(tmp_path / "t.csv"), expected(TABLE))
    labelled = from_table(table, "when,place")
    assert labelled.modes[0].kind == "time"
    assert any(f"{unit} since 1970" in note for note in labelled.notes)


@pytest.mark.parametrize(
    ("form", "step"),
    [("%Y-%m", 1), ("%m/%Y", 1), ("%b %Y", 1), ("%b-%y", 1), ("%Y%m", 1), ("quarter", 3)],
)
def test_months_and_quarters(form, step, tmp_path):
    months = pd.period_range("2012-01", periods=24, freq="M" if step == 1 else "Q")
    texts = [f"{m.year}Q{m.quarter}" if step == 3 else m.strftime(form) for m in months]
    table = pd.DataFrame({"month": texts * 2, "k": ["a"] * 24 + ["b"] * 24})
    (tmp_path / "t.csv").write_text(csv(table))
    bins = {"month": "1mo"} if form == "%Y%m" else None
    labelled = from_table(tmp_path / "t.csv", "month,k", bins=bins)
    assert [str(m)[:7] for m in labelled.modes[0].labels] == [str(m.start_time)[:7] for m in months]


def test_formats_that_change_further_down(tmp_path):
    late = [
        f"{when:%m/%d/%Y}" if i > 200 else f"{when:%m/%d/%Y %H:%M}"
        for i, when in enumerate(TABLE.when)
    ]
    (tmp_path / "t.csv").write_text(csv(TABLE.assign(when=late)[["when", "place"]]))
    same(read(tmp_path / "t.csv"), expected(TABLE))


def test_the_whole_column_says_which_is_the_month(tmp_path):
    # In the first 20,000 rows days are below 13.
    early = ["03/04/2014"] * 20_000
    table = pd.DataFrame({"when": [*early, "03/25/2014"], "k": ["a", "b"] * 10_000 + ["a"]})
    (tmp_path / "t.csv").write_text(csv(table))
    labelled = from_table(tmp_path / "t.csv", "when,k")
    assert str(labelled.modes[0].labels[0])[:10] == "2014-03-04"
    assert any("%m/%d/%Y" in note for note in labelled.notes)


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%d.%m.%y"])
def test_day_and_month_that_cannot_be_told_apart(form, tmp_path):
    table = TABLE[TABLE.when.dt.day <= 12]
    (tmp_path / "t.csv").write_text(csv(written(table, form)[["when", "place"]]))
    sentence = "Day and month of 'when' cannot be told apart.*date_format='day-first' or"
    with pytest.raises(InvalidDataError, match=sentence):
        read(tmp_path / "t.csv")
    order = "month-first" if form.startswith("%m") else "day-first"
    same(read(tmp_path / "t.csv", date_format=order), expected(table))
    same(read(tmp_path / "t.csv", date_format={"when": form}), expected(table))


# Numbers.


def test_signs_that_could_be_either(tmp_path):
    rng = np.random.default_rng(1)
    texts = [f"{a},{b:03d}" for a, b in rng.integers(1, 999, (N, 2))]
    (tmp_path / "t.csv").write_text(csv(DAYS.assign(cents=texts)))
    as_thousands = DAYS.assign(cents=[float(t.replace(",", "")) for t in texts])
    as_decimals = DAYS.assign(cents=[float(t.replace(",", ".")) for t in texts])
    path, arguments = tmp_path / "t.csv", ("when,place", "cents")
    same(read(path, *arguments), expected(as_thousands, "cents"))
    same(read(path, *arguments, decimal=","), expected(as_decimals, "cents"))
    notes = from_table(path, *arguments).notes
    assert any("if ',' is the decimal sign, say decimal=','" in note for note in notes)
    # Another column of the table says which sign is the decimal one.
    both = DAYS.assign(cents=texts, n=[f"{n},5" for n in DAYS.n])
    (tmp_path / "t.csv").write_text(csv(both, ";"))
    same(read(path, *arguments), expected(as_decimals, "cents"))


def test_words_that_the_user_says_are_missing(tmp_path):
    table = DAYS.assign(n=[-999 if i % 9 == 0 else n for i, n in enumerate(DAYS.n)])
    (tmp_path / "t.csv").write_text(csv(table))
    kept = expected(table[table.n != -999], "n")
    for source in (tmp_path / "t.csv", table):
        same(read(source, "when,place", "n", na=["NA", "-999"]), kept)
    namibia = DAYS.assign(place=["NA" if p == "Bern" else p for p in DAYS.place])
    (tmp_path / "t.csv").write_text(csv(namibia))
    with pytest.raises(InvalidDataError, match=r"'place' is missing.*na="):
        read(tmp_path / "t.csv", "when,place")
    same(read(tmp_path / "t.csv", "when,place", na=""), expected(namibia))


def test_what_is_no_number_is_said(tmp_path):
    texts = ["many" if i % 2 else "few" for i in range(N)]
    (tmp_path / "t.csv").write_text(csv(DAYS.assign(n=texts)))
    with pytest.raises(
        InvalidDataError, match=r"'n' does not hold numbers: 240 of 240.*'few'.*na="
    ):
        read(tmp_path / "t.csv", "when,place", "n")


def test_codes_with_zeros_in_front_are_labels(tmp_path):
    codes = [f"{z:05d}" for z in np.random.default_rng(0).choice([2134, 90210, 501], N)]
    (tmp_path / "t.csv").write_text(csv(DAYS.assign(place=codes)))
    labelled = from_table(tmp_path / "t.csv", "when,place")
    assert labelled.modes[1].text() == ["00501", "02134", "90210"]


# Encodings, delimiters, headers.


def test_an_encoding_that_must_be_said(tmp_path):
    table = truth(places=["Москва", "Тверь", "Омск"], hours=False)
    (tmp_path / "t.csv").write_bytes(csv(table).encode("cp1251"))
    same(read(tmp_path / "t.csv", "when,place", encoding="cp1251"), expected(table))


def lines(**changes):
    table = DAYS.assign(**changes) if changes else DAYS
    return csv(table).splitlines()


def test_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("\n".join(lines()[1:]))
    same(read(tmp_path / "t.csv", "column0,column1", "column3"), expected(DAYS, "n"))
    assert check_table(str(tmp_path / "t.csv"))["rows"] == N


def test_years_as_names_are_a_header(tmp_path):
    (tmp_path / "t.csv").write_text("land,2001,2002,2003\nA,1,2,3\nB,4,5,6\nC,7,8,9\n")
    assert check_table(str(tmp_path / "t.csv"))["rows"] == 3
    labelled = from_table(tmp_path / "t.csv", "land,year", melt={"year": "2001:2003"})
    np.testing.assert_array_equal(labelled.tensor.values, np.arange(1, 10))


def test_rows_that_are_too_long_are_told_by_line(tmp_path):
    found = lines()
    found[100] += ",1,2,3"
    (tmp_path / "t.csv").write_text("\n".join(found))
    notes = from_table(tmp_path / "t.csv", "when,place").notes
    assert any("too many columns (the first on line 101" in note for note in notes)


def test_a_quote_that_is_never_closed(tmp_path):
    found = lines()
    found[100] = found[100].replace(",", ',"', 1)
    (tmp_path / "t.csv").write_text("\n".join(found))
    labelled = from_table(tmp_path / "t.csv", "when,place")
    assert labelled.tensor.values.sum() == N
    assert any("never closed" in note for note in labelled.notes)


def test_columns_aligned_by_blanks(tmp_path):
    rows = [["when", "place", "cents", "n"], *([str(x)[:10] for x in row] for row in DAYS.values)]
    text = "\n".join("".join(f"{x:>14}" for x in row) for row in rows)
    (tmp_path / "t.txt").write_text(text)
    same(read(tmp_path / "t.txt", "when,place", "n"), expected(DAYS, "n"))


def test_a_delimiter_that_must_be_said(tmp_path):
    (tmp_path / "t.txt").write_text(csv(DAYS, "%"))
    with pytest.raises(SmartCPDError, match="Say what parts its columns with delimiter="):
        read(tmp_path / "t.txt", "when,place")
    same(read(tmp_path / "t.txt", "when,place", delimiter="%"), expected(DAYS))


def test_several_kinds_of_line_breaks(tmp_path):
    text = "".join(line + ("\r\n" if i % 3 else "\n") for i, line in enumerate(lines()))
    (tmp_path / "t.csv").write_text(text, newline="")
    same(read(tmp_path / "t.csv", "when,place"), expected(DAYS))


# Sources.


@dataclass
class Stored:
    """A way to store the table of days."""

    name: str
    write: object
    member: str = ""


def zipped(path, text):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/days.csv", text)
        archive.writestr("__MACOSX/._days.csv", b"x")
        archive.writestr("README.md", "hello")


def database(path, table, more=False):
    with sqlite3.connect(path) as connection:
        table.assign(when=table.when.dt.strftime("%Y-%m-%d")).to_sql(
            "days", connection, index=False
        )
        if more:
            connection.execute("CREATE TABLE other (a)")
    connection.close()


def jsonable(table):
    return table.assign(when=table.when.dt.strftime("%m/%d/%Y")).to_dict("records")


def workbook(path, table, above=0):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    sheet = book.active
    for _ in range(above):
        sheet.append(["A report"])
    sheet.append(list(table.columns))
    for row in table.itertuples(index=False):
        sheet.append([row.when.to_pydatetime(), row.place, int(row.cents), int(row.n)])
    other = book.create_sheet("notes")
    other.append(["x", "y"])
    book.save(path)


def packed(opener):
    def write(path, table):
        with opener(path, "wb") as out:
            out.write(csv(table).encode())

    return write


STORED = [
    Stored("days.csv.gz", packed(gzip.open)),
    Stored("days.csv.bz2", packed(bz2.open)),
    Stored("days.csv.xz", packed(lzma.open)),
    Stored("days.csv", packed(gzip.open)),
    Stored("days.zip", lambda path, t: zipped(path, csv(t))),
    Stored("days.xlsx", workbook),
    Stored("report.xlsx", lambda path, t: workbook(path, t, above=3), "::Sheet"),
    Stored(
        "days.jsonl",
        lambda path, t: path.write_text("".join(json.dumps(r) + "\n" for r in jsonable(t))),
    ),
    Stored("days.json", lambda path, t: path.write_text(json.dumps(jsonable(t)))),
    Stored("nested.json", lambda path, t: path.write_text(json.dumps({"data": jsonable(t)}))),
    Stored(
        "lines.txt",
        lambda path, t: path.write_text("".join(json.dumps(r) + "\n" for r in jsonable(t))),
    ),
    Stored("days.feather", lambda path, t: pyarrow.feather.write_feather(t, str(path))),
    Stored("days.db", database),
    Stored("two.sqlite", lambda path, t: database(path, t, more=True), "::days"),
    Stored("days.parquet", lambda path, t: t.to_parquet(path)),
]


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored.name)
def test_sources(stored, tmp_path):
    path = tmp_path / stored.name
    stored.write(path, DAYS)
    same(read(f"{path}{stored.member}", "when,place", "n"), expected(DAYS, "n"))


def test_what_is_meant_inside_a_file(tmp_path):
    database(tmp_path / "t.db", DAYS, more=True)
    with pytest.raises(InvalidDataError, match=r"holds 2 tables; choose one, such as .*::days"):
        read(tmp_path / "t.db")
    with pytest.raises(InvalidDataError, match="no table 'no'"):
        read(f"{tmp_path / 't.db'}::no")
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", csv(DAYS))
        archive.writestr("b.csv", csv(DAYS[:50]))
    with pytest.raises(InvalidDataError, match=r"holds 2 files; choose one, such as .*::a\.csv"):
        read(tmp_path / "t.zip")
    same(read(f"{tmp_path / 't.zip'}::b.csv", "when,place"), expected(DAYS[:50]))
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(InvalidDataError, match="not a whole zip archive"):
        read(tmp_path / "no.zip")


def test_a_folder_of_files_that_differ(tmp_path):
    (tmp_path / "a.csv").write_text(csv(DAYS[:100]))
    (tmp_path / "b.csv").write_text(csv(DAYS[100:][["n", "place", "when"]], ";"))
    same(read(tmp_path, "when,place", "n"), expected(DAYS, "n"))


# Wide tables, absent cells, coordinates.


def test_a_wide_table(tmp_path):
    months = ["JAN", "FEB", "MAR", "APR"]
    values = np.random.default_rng(0).gamma(2, 50, (6, 4)).round(1)
    wide = pd.DataFrame(values, columns=months).astype(object)
    wide.iloc[2, 1] = "NA"
    wide.insert(0, "place", list("abcdef"))
    (tmp_path / "t.csv").write_text(csv(wide))
    labelled = from_table(tmp_path / "t.csv", "place,month", melt={"month": "JAN:APR"})
    assert labelled.modes[1].text() == months
    assert labelled.tensor.absent == "unobserved"
    assert labelled.tensor.nnz == 23
    found = check_table(str(tmp_path / "t.csv"))
    assert found["command"].endswith("--modes place,month --melt JAN:APR=month --rank 3")
    frame = wide.replace("NA", np.nan).infer_objects()
    again = from_table(frame, "place,month", melt={"month": months})
    np.testing.assert_array_equal(again.tensor.values, labelled.tensor.values)
    with pytest.raises(SmartCPDError, match="melt names column 'MAI'"):
        from_table(frame, "place,month", melt={"month": "JAN:MAI"})


def test_what_absent_cells_are():
    table = pd.DataFrame({"a": list("xyz"), "b": list("pqp"), "v": [1.5, 2.5, 3.5], "n": [1, 2, 3]})
    measured = from_table(table, "a,b", "v")
    assert measured.tensor.absent == "unobserved"
    assert any("'v' is taken for a measurement" in note for note in measured.notes)
    assert from_table(table, "a,b", "n").tensor.absent == "zero"
    assert from_table(table, "a,b", "n", absent="missing").tensor.absent == "unobserved"
    twice = pd.concat([table, table])
    assert from_table(twice, "a,b", "v").tensor.absent == "zero"


def test_bins_of_a_width():
    table = pd.DataFrame({"lat": [40.76, 40.769, 40.77, 40.7, -0.005], "k": list("abaab")})
    labelled = from_table(table, "lat,k", bins={"lat": "0.01"})
    assert labelled.modes[0].text() == [
        *("-0.01 to 0.00", "40.70 to 40.71", "40.76 to 40.77", "40.77 to 40.78")
    ]
    assert labelled.modes[0].kind == "number"


def test_coordinates_are_offered_as_a_grid(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "pickup": TABLE.when,
            "Latitude": 40.7 + rng.normal(size=N) / 20,
            "Longitude": -74 + rng.normal(size=N) / 20,
            "trip_id": rng.permutation(N),
        }
    )
    (tmp_path / "t.csv").write_text(csv(table))
    command = check_table(str(tmp_path / "t.csv"))["command"]
    assert "--modes pickup@1d,pickup@hour,Latitude,Longitude --bin Latitude=0.00" in command


# What a query may see.


SIGHTS = [
    "read_csv('{secret}')",
    "read_text('{secret}')",
    "'{secret}'",
    "glob('{folder}/*')",
    "parquet_metadata('{secret}')",
    "TABLE_IN_PYTHON",
]


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
def test_a_condition_reads_nothing_but_the_table(kind, tmp_path):
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    source = tmp_path / f"t.{kind}"
    if kind == "pandas":
        source = DAYS
    elif kind == "csv":
        source.write_text(csv(DAYS))
    else:
        DAYS.to_parquet(source)
    TABLE_IN_PYTHON = DAYS  # noqa: F841
    for sight in SIGHTS if kind == "parquet" else SIGHTS[::5]:
        seen = sight.format(secret=tmp_path / "secret.csv", folder=tmp_path)
        with pytest.raises(SmartCPDError, match="is not an SQL condition"):
            from_table(source, "when,place", where=f"(SELECT count(*) FROM {seen}) > 0")
    assert from_table(source, "when,place", where="n > 1").tensor.nnz


def test_a_buffer_is_no_table():
    with pytest.raises(InvalidDataError, match="must be a path"):
        from_table(io.StringIO("a,b\n1,2\n"), "a,b")


def test_dates_of_python_are_kept():
    table = pd.DataFrame({"day": [dt.date(2014, 5, 22), dt.date(2014, 5, 23)], "k": ["a", "b"]})
    assert from_table(table, "day,k").modes[0].kind == "time"
