"""Tables with the habits of offices and programs, by the command that is suggested."""

import random
from typing import NamedTuple

import pytest

from smartcpd import from_table
from smartcpd._app.inspection import check_table
from smartcpd.errors import InvalidDataError

CITIES, YEARS = ("Aarau", "Bern", "Chur", "Davos"), range(2010, 2020)
RNG = random.Random(1)
ROWS = [(city, year, RNG.randint(5, 90)) for city in CITIES for year in YEARS]
TOTAL = sum(value for *_, value in ROWS)
REFUND = next(value for city, year, value in ROWS if (city, year) == ("Bern", 2012))
BY_YEAR = [("Total", year, sum(v for _, y, v in ROWS if y == year)) for year in YEARS]
NAMES = ("station", "year", "rain")
HEADER = "station,year,rain\n"


def lines(rows, sign=","):
    return "".join(sign.join(map(str, row)) + "\n" for row in rows)


def changed(change, every=5):
    """The rows, with the value of one in some changed."""
    return lines(
        (city, year, change(value, i) if i % every == 0 else value)
        for i, (city, year, value) in enumerate(ROWS)
    )


def without(every=9):
    return sum(value for i, (*_, value) in enumerate(ROWS) if i % every)


class Habit(NamedTuple):
    name: str
    text: str
    total: float = TOTAL
    says: str = ""
    """What is found in the advice."""
    options: str = "--modes station,year --value rain"
    shape: tuple[int, int] = (4, 10)


WIDE = [(city, *(RNG.randint(1, 99) for _ in range(4))) for city in CITIES]
WIDE_TOTAL = sum(sum(row[1:]) for row in WIDE)
MELTED = "--modes station,year --melt 2010:2013=year"
HABITS = [
    Habit("units", HEADER + ",,mm\n" + lines(ROWS), says="',,mm'"),
    Habit("second names", "place,when,what\n" + HEADER + lines(ROWS), says="station,year,rain",
          options="--modes place,when --value what"),
    Habit("flags", HEADER + changed(lambda v, i: f"{v} {'pbe'[i % 3]}"), says="is left out"),
    Habit("stars", HEADER + changed(lambda v, i: f"{v}*"), says="is left out: '*'"),
    Habit("footnotes of values", HEADER + changed(lambda v, i: f"{v} [1]"), says="'[1]'"),
    Habit("letters", HEADER + changed(lambda v, i: f"{v}{'abc'[i % 3]}"), says="is left out"),
    Habit("intervals", HEADER + changed(lambda v, i: f"{v} [{v - 1}-{v + 2}]", 1)),
    Habit("one unit", HEADER + changed(lambda v, i: f"{v} mm", 1), says="the unit is left out"),
    Habit("row names", '"",' + HEADER + lines((i + 1, *r) for i, r in enumerate(ROWS))),
    Habit("an index", "Unnamed: 0," + HEADER + lines((i, *r) for i, r in enumerate(ROWS))),
    Habit("single quotes", lines([f"'{x}'" for x in row] for row in [NAMES, *ROWS])),
    Habit("a frame", "+---+---+\n| station | year | rain |\n+---+---+\n"
          + "".join(f"| {c} | {y} | {v} |\n" for c, y, v in ROWS) + "+---+---+\n"),
    Habit("no value", HEADER + changed(lambda v, i: "..", 9), without(),
          options="--modes station,year --value rain --absent missing"),
    Habit("a word", HEADER + changed(lambda v, i: "x", 9), without(), says="na='x'"),
    Habit("a placeholder", HEADER + changed(lambda v, i: -9999, 9), without() - 5 * 9999,
          says="na='-9999'"),
    Habit("refunds", HEADER.replace("rain", "sum paid")
          + lines((c, y, -v if y == 2012 and c == "Bern" else v) for c, y, v in ROWS),
          TOTAL - REFUND, "1 of 40 values of 'sum paid' is negative (refunds",
          options="--modes station,year --value 'sum paid' --where '\"sum paid\" >= 0'"),
    Habit("frost", HEADER.replace("rain", "tempMin")
          + lines((c, y, -v if y == 2012 and c == "Bern" else v) for c, y, v in ROWS),
          TOTAL - 2 * REFUND, options="--modes station,year --value tempMin --absent missing"),
    Habit("totals", HEADER + lines(ROWS + BY_YEAR), 2 * TOTAL, "is the sum of", shape=(5, 10)),
    Habit("spellings", HEADER + lines((c.upper() if y > 2018 else c, y, v) for c, y, v in ROWS),
          says="differ in upper and lower case", shape=(8, 10)),
    Habit("repeated rows", HEADER + lines(ROWS + ROWS[:9]), TOTAL + sum(v for *_, v in ROWS[:9])),
    Habit("a program's whole numbers", HEADER + lines((c, f"{y}.0", v) for c, y, v in ROWS)),
    Habit("notes below", HEADER + lines(ROWS) + "\nSource: an office\n* provisional; may change\n"),
    Habit("years of two flags", "station\t2010 \t2011 \t2012 \t2013 \n"
          + "".join(f"{c}\t{a} b\t{b} \t: \t{d} p\n" for c, a, b, _, d in WIDE),
          WIDE_TOTAL - sum(row[3] for row in WIDE), options=MELTED, shape=(4, 3)),
    Habit("two rows of names", "station,2010,2010,2011,2011\n,rain,snow,rain,snow\n" + lines(WIDE),
          WIDE_TOTAL, options="--modes station,column --melt '2010 rain:2011 snow=column'",
          shape=(4, 4)),
    Habit("the same below", "station,2010,2011,2012,2013\n,all,all,all,all\n" + lines(WIDE),
          WIDE_TOTAL, options=MELTED, shape=(4, 4)),
    *(Habit(f"{yes} and {no}", HEADER + lines((c, y, yes if v > 40 else no) for c, y, v in ROWS),
            sum(v > 40 for *_, v in ROWS), "says yes or no of each cell")
      for yes, no in [("ja", "nein"), ("Yes", "No"), ("WAHR", "FALSCH"), ("oui", "non")]),
    Habit("answers", "name,a,b,c\n" + lines((f"p{i}", "Y", "N", "YN"[i % 2]) for i in range(60)),
          90, options="--modes name,column --melt a:c=column", shape=(60, 3)),
    Habit("more than 64 bits", HEADER.replace("rain", "bytes")
          + lines((c, y, v << 70) for c, y, v in ROWS), TOTAL << 70,
          options="--modes station,year --value bytes"),
    Habit("days of a spreadsheet", "station,date,rain\n"
          + lines((c, 43000 + y, v) for c, y, v in ROWS), says="date_format='excel'",
          options="--modes station,date --value rain"),
    Habit("every third hour", "station,hour,rain\n"
          + lines((c, 3 * (y - 2010), v) for c, y, v in ROWS if y < 2018),
          sum(v for _, y, v in ROWS if y < 2018), options="--modes station,hour --value rain",
          shape=(4, 8)),
    Habit("midnights", "station,at,rain\n"
          + lines((c, f"{y}-01-01 00:00:00", v) for c, y, v in ROWS),
          options="--modes station,at@1y --value rain"),
    Habit("numbered columns", "station,q1,q2,q3,q4\n" + lines(WIDE), WIDE_TOTAL,
          options="--modes station,q --melt q1:q4=q", shape=(4, 4)),
    Habit("labels that follow from others", "kind,half,rain\n"
          + lines((y - 2009, "ab"[y > 2014], v) for _, y, v in ROWS),
          options="--modes kind,half --value rain", shape=(10, 2)),
    Habit("a row of years", '"",Year,wheat,oats,rye\n' + lines((i + 1, 1901 + i, *row[1:4])
          for i, row in enumerate(WIDE)), sum(sum(row[1:4]) for row in WIDE),
          options="--modes Year,column --melt wheat:rye=column", shape=(4, 3)),
    Habit("a row of dates", "month,wheat,oats,rye\n" + lines((f"2020-{i + 1:02}-01", *row[1:4])
          for i, row in enumerate(WIDE)), sum(sum(row[1:4]) for row in WIDE),
          options="--modes month@1mo,column --melt wheat:rye=column", shape=(4, 3)),
    Habit("a small table of counts", '"",fair,red,dark\n' + lines((row[0], *row[1:4])
          for row in WIDE), sum(sum(row[1:4]) for row in WIDE),
          options="--modes column0,column --melt fair:dark=column", shape=(4, 3)),
    Habit("things of one row each", "name,doors,seats,gears\n" + lines(
          (f"car {i}", i % 3, i % 4, i % 5) for i in range(40)), 39 + 60 + 80,
          options="--modes name,column --melt doors:gears=column", shape=(40, 3)),
    Habit("a panel", "firm,year,staff,fires,invest,founded\n" + lines(
          (c, y, v, (7 * v + y) % 23, v * y / 7, len(c) + 1950) for c, y, v in ROWS),
          pytest.approx(sum(v * y / 7 for _, y, v in ROWS)),
          options="--modes firm,year --value invest"),
    Habit("a panel with names of rows", '"",firm,visit,state\n' + lines(
          (f"{i // 10 + 1}.{y}", c, y - 2009, v % 3 + 1) for i, (c, y, v) in enumerate(ROWS)),
          sum(v % 3 + 1 for *_, v in ROWS), options="--modes firm,visit --value state"),
    Habit("a mean and no sum", "station,kind,year,air temp\n" + lines(
          (c, "ab"[y % 2], y, v) for c, y, v in ROWS + ROWS), TOTAL,
          options="--modes station,year --value 'air temp' --agg mean"),
    Habit("a sum or a mean", "station,kind,wage\n" + lines(
          (c, "ab"[y % 2], v * y / 7) for c, y, v in ROWS + ROWS),
          pytest.approx(2 * sum(v * y / 7 for _, y, v in ROWS)), "agg='mean' takes the mean",
          options="--modes station,kind --value wage", shape=(4, 2)),
    Habit("measured in whole numbers", "kind,sex,height,mass,wage\n" + lines(
          ("abc"[i % 3], "mf"[i % 2], RNG.randint(150, 190), RNG.randint(50, 90), i + 0.5)
          for i in range(120)), 60 * 120, options="--modes kind,sex --value wage", shape=(3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name)
def test_the_suggested_command_reads_it_right(habit, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(habit.text)
    found = check_table(str(path))
    assert found["command"].partition(f"{path} ")[2] == f"{habit.options} --rank 3"
    assert found["tried"]["total"] == habit.total
    assert tuple(found["tried"]["shape"]) == habit.shape
    assert habit.says in " ".join(found["advice"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER + changed(lambda v, i: f"<{v}", 3), "na="),
        (HEADER + changed(lambda v, i: f"{v}k", 2), "na="),
        (HEADER + lines((c if y == 2010 else "", y, v) for c, y, v in ROWS), "fill it down"),
        (HEADER + lines(ROWS[:1]), "a fit needs two"),
        (HEADER + lines(ROWS[:1] * 40), "a fit needs two"),
    ],
    ids=["below a limit", "thousands in letters", "merged cells", "one row", "all the same"],
)
def test_what_cannot_be_read_is_said_with_the_option(text, words, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    found = check_table(str(path))
    assert found["command"] is None
    assert words in " ".join(found["advice"])


def test_remarks_that_most_rows_do_without_are_no_mode(tmp_path):
    path = tmp_path / "table.csv"
    noted = ((*row, "" if i % 5 else f"asked {i % 3}") for i, row in enumerate(ROWS))
    path.write_text("station,year,rain,note\n" + lines(noted))
    found = check_table(str(path))
    assert found["columns"][3]["advice"] == "hardly: 80% of the rows have none"
    assert "fill it down" not in " ".join(found["advice"])


def test_digits_in_groups_are_no_identifier(tmp_path):
    path = tmp_path / "table.csv"
    rows = [(i % 4, i % 5, i % 6, f"{i + 11} {i + 100}") for i in range(120)]
    path.write_text("place;kind;hour;inhabitants\n" + lines(rows, ";"))
    assert " --value inhabitants " in check_table(str(path))["command"]


def test_measurements_that_many_rows_lack_are_named(tmp_path):
    path = tmp_path / "table.csv"
    rows = [(i % 4, i % 5, i % 6, i + 0.5 if i % 3 else "n/a") for i in range(120)]
    path.write_text("place,kind,hour,level\n" + lines(rows))
    found = check_table(str(path))
    assert "--value level --allow-lost-rows" in " ".join(found["advice"])


def test_a_letter_belongs_to_a_code_unless_it_is_the_value(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("line,stop,n\n" + lines([("12", "x", 1), ("12A", "y", 2), ("3", "x", 4)] * 9))
    assert set(from_table(path, "line,stop", "n").modes[0].text()) == {"12", "12A", "3"}


@pytest.mark.parametrize("first", ["Ems,unknown,none", "Ems,NA,3", "Ems,2009,n.v."])
def test_a_row_of_data_is_no_line_of_units(first, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(HEADER + first + "\n" + lines(ROWS))
    assert check_table(str(path))["rows"] == len(ROWS) + 1


def test_numbers_in_thousands_are_no_flags(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(HEADER + changed(lambda v, i: f"{v}k", 2))
    with pytest.raises(InvalidDataError, match="of 40 rows"):
        from_table(path, "station,year", "rain")


def test_a_value_is_no_identifier(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("station,year,sales\n" + lines((c, y, 1000 * v + y) for c, y, v in ROWS))
    assert check_table(str(path))["columns"][2]["advice"].startswith("as --value")


def test_labels_with_a_number_before_them_are_no_value(tmp_path):
    path = tmp_path / "table.csv"
    kinds = ("1. white", "2. black", "3. green", "4. other")
    path.write_text("kind,year,rain\n" + lines((kinds[y % 4], y, v) for _, y, v in ROWS))
    found = check_table(str(path))
    assert found["columns"][0]["advice"] == "yes"
    assert "--modes kind,year --value rain" in found["command"]


def test_a_list_of_codes_and_names_has_no_modes(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "code,name\n" + lines((f"{c}{i}", f"{c} {i}") for i, (c, *_) in enumerate(ROWS))
    )
    assert check_table(str(path))["command"] is None


def test_labels_that_can_be_read_come_before_those_of_which_there_are_too_many(tmp_path):
    path = tmp_path / "table.csv"
    rows = [(f"plane {i % 600}", f"line {i % 6}", RNG.choice(CITIES)) for i in range(2400)]
    path.write_text(
        "plane,airline,origin,destination,kind\n"
        + lines((*row, RNG.choice(CITIES), RNG.choice("abc")) for row in rows)
    )
    assert " --modes airline,origin,destination,kind " in check_table(str(path))["command"]


def test_a_yes_without_any_no_leaves_the_other_cells_empty(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(HEADER + lines((c, y, "yes") for c, y, v in ROWS if v > 40))
    X = from_table(path, "station,year", "rain")
    assert X.tensor.absent == "zero"
    assert X.tensor.values.sum() == sum(v > 40 for *_, v in ROWS)
