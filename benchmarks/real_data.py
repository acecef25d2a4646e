"""Real sparse tensors, and planted ones of the paper's size, as arrays every peer can take."""

from __future__ import annotations

import csv
import gzip
import os
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from smartcpd import datasets
from smartcpd._app.paper.peers import SparseData, sparse_data
from smartcpd.errors import DataNotFoundError as NoDataError


class Planted(NamedTuple):
    """Data with the factors of its expected counts, where an oracle can start."""

    data: SparseData
    factors: list[np.ndarray]


def data_folder() -> Path:
    folder = os.environ.get("SMARTCPD_DATA")
    if not folder:
        raise NoDataError(
            "SMARTCPD_DATA is not set. Set it to the folder with chicago_crime_2022.csv.gz, "
            "collegemsg.txt.gz, nyc_taxi_2013.npz and umls/."
        )
    return Path(folder)


def counted(indices: np.ndarray, shape: tuple[int, ...]) -> SparseData:
    """Add up events that fall into the same cell; cells come in row-major order."""
    cells, counts = np.unique(np.ravel_multi_index(tuple(indices.T), shape), return_counts=True)
    where = np.stack(np.unravel_index(cells, shape), axis=1).astype(np.int64)
    return SparseData(where, counts.astype(np.float64), shape)


def present(data: SparseData) -> SparseData:
    """Whether a cell was ever counted."""
    return data._replace(values=np.ones_like(data.values))


def chicago_2022() -> SparseData:
    """Crime reports: date x hour x community area x type, 334x24x77x31, 202,313 nonzeros."""
    return sparse_data(datasets.chicago_crime("2022", fetch=False).tensor)


def uci_chat(n_people: int = 400) -> SparseData:
    """Who wrote to whom on which day, yes or no, 400x400x188, 18,385 nonzeros."""
    return sparse_data(datasets.uci_chat(n_people, fetch=False).tensor)


def umls() -> SparseData:
    """A knowledge graph: head x relation x tail, yes or no, 135x46x135, 6,529 nonzeros."""
    files = [data_folder() / "umls" / f"{part}.txt" for part in ("train", "valid", "test")]
    return _graph([line for file in files for line in file.read_text().splitlines()])


def kinships() -> SparseData:
    """Who calls whom by which word of kinship, 104x25x104, 10,686 nonzeros, yes or no."""
    with gzip.open(data_folder() / "kinships.tsv.gz", "rt") as file:
        return _graph(file.read().splitlines())


def _graph(lines: list[str]) -> SparseData:
    """Triples of head, relation and tail, separated by tabs."""
    triples = np.array([line.split("\t") for line in lines])
    entities = np.unique(triples[:, [0, 2]])
    relations, relation = np.unique(triples[:, 1], return_inverse=True)
    head, tail = (np.searchsorted(entities, triples[:, n]) for n in (0, 2))
    shape = (len(entities), len(relations), len(entities))
    return present(counted(np.stack([head, relation, tail], axis=1), shape))


def uber_april() -> SparseData:
    """Pick-ups in New York in April 2014: day x hour x latitude x longitude, both rounded to three
    decimals, 30x24x662x1088, 415,898 nonzeros, counts.
    """
    with gzip.open(data_folder() / "messy" / "uber_apr14.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    times = [
        datetime.strptime(
            row[0], "%m/%d/%Y %H:%M:%S" if row[0].count(":") > 1 else "%m/%d/%Y %H:%M"
        )
        for row in rows
    ]
    places = [np.round(np.array([float(row[n]) for row in rows]), 3) for n in (1, 2)]
    columns = [[t.day for t in times], [t.hour for t in times], *places]
    return _crossed([np.asarray(column) for column in columns])


def pollinators() -> SparseData:
    """Visits of insects to flowers: visitor x plant x day, 463x116x105, 5,983 nonzeros, counts."""
    with gzip.open(data_folder() / "pollinators_2011_2014.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    columns = [np.array([row[name] for row in rows]) for name in ("visitor", "plant", "date")]
    return _crossed(columns, np.array([float(row["count"]) for row in rows]))


def _crossed(columns: list[np.ndarray], counts: np.ndarray | None = None) -> SparseData:
    """A tensor whose modes are the kinds of entries in each column of a table."""
    kinds = [np.unique(column, return_inverse=True) for column in columns]
    shape = tuple(len(names) for names, _ in kinds)
    cells, where = np.unique(
        np.ravel_multi_index([index for _, index in kinds], shape), return_inverse=True
    )
    values = np.bincount(where, weights=counts)
    indices = np.stack(np.unravel_index(cells, shape), axis=1).astype(np.int64)
    return SparseData(indices[values > 0], values[values > 0], shape)


def fhv_trips(weeks: bool = False) -> SparseData:
    """Trips by company and day, 329x243, 26,181 nonzeros; or by company, week and weekday."""
    with gzip.open(data_folder() / "messy" / "fhv_trips_2015.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    companies = np.array([row["Base Name"] for row in rows])
    days = [datetime.strptime(row["Pick Up Date"], "%m/%d/%Y") for row in rows]
    texts = [row["Number of Trips"].strip().replace(",", "") for row in rows]
    trips = np.array([float(text) if text.isdigit() else 0.0 for text in texts])
    kept = trips > 0
    when = [np.array([day.toordinal() for day in days])]
    if weeks:
        when = [np.array([day.isocalendar()[k] for day in days]) for k in (1, 2)]
    return _crossed([column[kept] for column in (companies, *when)], trips[kept])


def hangzhou_metro() -> np.ndarray:
    """Passengers by station, day and time of day, 80x25x108, large counts, dense."""
    with np.load(data_folder() / "hangzhou_metro.npz") as held:
        return np.asarray(held["X"])


def rain_in_india() -> np.ndarray:
    """Rain by region, year and month, 36x115x12; NaN where it was not measured."""
    with gzip.open(data_folder() / "messy" / "rainfall_india.csv.gz", "rt") as file:
        table = list(csv.reader(file))
    months = [n for n, name in enumerate(table[0]) if name in _MONTHS]
    regions, region = np.unique([row[0] for row in table[1:]], return_inverse=True)
    years, year = np.unique([row[1] for row in table[1:]], return_inverse=True)
    rain = np.full((len(regions), len(years), len(months)), np.nan)
    for i, j, row in zip(region, year, table[1:], strict=True):
        rain[i, j] = [float(row[n]) if row[n] not in ("", "NA") else np.nan for n in months]
    return rain


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def nyc_taxi() -> np.ndarray:
    """Taxi trips in 2013: pickup zone x dropoff zone x hour, 30x30x1464, counts, dense."""
    with np.load(data_folder() / "nyc_taxi_2013.npz") as held:
        return np.asarray(held["X"])


def synthetic_chicago(seed: int) -> Planted:
    """Planted counts of the paper's Chicago size, 6186x24x77x32, about 5.3 M nonzeros, rank 10."""
    X, factors = datasets.events((6186, 24, 77, 32), 10, 6_100_000, random_state=seed)
    return Planted(sparse_data(X), factors)
