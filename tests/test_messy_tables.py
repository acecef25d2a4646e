"""Published tables, each by the command that ``smartcpd check`` suggests."""

import os
import shlex
from pathlib import Path

import pandas as pd
import pytest

from smartcpd._app.cli.table_options import TableOptions
from smartcpd._app.inspection import check_table

FOLDER = os.environ.get("SMARTCPD_DATA")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="SMARTCPD_DATA does not say where data is")
OPTIONS = {
    "uber_apr14": ["Date/Time@1d,Date/Time@hour,Lat,Lon", "--bin", "Lat=0.005,Lon=0.005"],
    "fhv_trips_2015": ["Base Name,Pick Up Date", "--value", "Number of Trips"],
    "pollinators_raw_2011_2013": ["MEADOW,DATE@1w,PLTSP_NAME,VISSP_NAME"],
    "rainfall_india": ["SUBDIVISION,YEAR,month", "--melt", "JAN:DEC=month"],
}
SHAPES = {
    "uber_apr14": [30, 24, 185, 293],
    "fhv_trips_2015": [329, 243],
    "pollinators_raw_2011_2013": [19, 111, 113, 465],
    "rainfall_india": [36, 115, 12],
}


def rows_of_pandas(path):
    # One table has lines longer than its header.
    with_names = {"names": range(40), "header": None, "skiprows": 1} if "poll" in str(path) else {}
    return len(pd.read_csv(path, low_memory=False, **with_names))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_the_command_that_check_suggests(name):
    path = Path(FOLDER) / "messy" / f"{name}.csv.gz"
    found = check_table(str(path))
    assert found["rows"] == rows_of_pandas(path)
    assert shlex.split(found["command"]) == [
        "smartcpd",
        "fit",
        str(path),
        "--modes",
        *OPTIONS[name],
        "--rank",
        "3",
    ]
    assert found["tried"]["shape"] == SHAPES[name]
    lost = [note for note in found["tried"]["notes"] if "left out" in note]
    few = ("6 of 25,046 rows", "70 of 49,392 rows")
    assert all(note.startswith(few) for note in lost)


def test_the_largest_values_are_there():
    path = Path(FOLDER) / "messy" / "fhv_trips_2015.csv.gz"
    table = pd.read_csv(path)
    trips = table["Number of Trips"].astype(str).str.replace(",", "").astype(int)
    from smartcpd import from_table

    labelled = from_table(path, ["Base Name", "Pick Up Date"], "Number of Trips")
    assert labelled.tensor.values.sum() == trips.sum()


def test_options_come_back_as_words():
    options = TableOptions(
        modes="a,b",
        date_format=["%d, %B %Y", "x=day-first"],
        na=["NA,-999"],
        melt="JAN:DEC=month",
        allow_lost_rows=True,
    )
    words = shlex.join(options.words())
    assert words == (
        "--modes a,b --allow-lost-rows --date-format '%d, %B %Y' --date-format x=day-first "
        "--na NA,-999 --melt JAN:DEC=month"
    )
