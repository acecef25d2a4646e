"""Real sparse tensors, and planted ones of the paper's size, as arrays every peer can take."""

from __future__ import annotations

import csv
import gzip
import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from smartcpd import datasets

SECONDS_A_DAY = 86_400


class NoDataError(Exception):
    """The real data is not on this machine."""


class SparseData(NamedTuple):
    """The nonzeros of a tensor, each cell once."""

    indices: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)


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


def labelled(columns: list[np.ndarray]) -> SparseData:
    """Counts of label combinations; every mode holds the labels that occur, sorted."""
    modes = [np.unique(column, return_inverse=True) for column in columns]
    indices = np.stack([codes for _, codes in modes], axis=1)
    return counted(indices, tuple(len(labels) for labels, _ in modes))


def present(data: SparseData) -> SparseData:
    """Whether a cell was ever counted."""
    return data._replace(values=np.ones_like(data.values))


def chicago_2022() -> SparseData:
    """Crime reports: date x hour x community area x type, 334x24x77x31, 202,313 nonzeros."""
    with gzip.open(data_folder() / "chicago_crime_2022.csv.gz", "rt", newline="") as lines:
        dates, hours, areas, types = zip(*list(csv.reader(lines))[1:], strict=True)
    return labelled(
        [np.array(dates), np.array(hours, dtype=int), np.array(areas, dtype=int), np.array(types)]
    )


def uci_chat(n_people: int = 400) -> SparseData:
    """Who wrote to whom on which day, yes or no, 400x400x188, 18,385 nonzeros.

    Messages among the most prolific senders (the lower id wins a tie); days of 24 hours are counted
    from the first of these messages.
    """
    with gzip.open(data_folder() / "collegemsg.txt.gz", "rt") as lines:
        messages = np.loadtxt(lines, dtype=np.int64, skiprows=1)
    ids, sent = np.unique(messages[:, 0], return_counts=True)
    people = np.sort(ids[np.argsort(-sent, kind="stable")[:n_people]])
    among = messages[np.isin(messages[:, :2], people).all(axis=1)]
    pairs = np.searchsorted(people, among[:, :2])
    days = (among[:, 2] - among[:, 2].min()) // SECONDS_A_DAY
    shape = (n_people, n_people, int(days.max()) + 1)
    return present(counted(np.column_stack([pairs, days]), shape))


def umls() -> SparseData:
    """A knowledge graph: head x relation x tail, yes or no, 135x46x135, 6,529 nonzeros."""
    files = [data_folder() / "umls" / f"{part}.txt" for part in ("train", "valid", "test")]
    triples = np.array(
        [line.split("\t") for file in files for line in file.read_text().splitlines()]
    )
    entities = np.unique(triples[:, [0, 2]])
    relations, relation = np.unique(triples[:, 1], return_inverse=True)
    head, tail = (np.searchsorted(entities, triples[:, n]) for n in (0, 2))
    shape = (len(entities), len(relations), len(entities))
    return present(counted(np.stack([head, relation, tail], axis=1), shape))


def nyc_taxi() -> np.ndarray:
    """Taxi trips in 2013: pickup zone x dropoff zone x hour, 30x30x1464, counts, dense."""
    with np.load(data_folder() / "nyc_taxi_2013.npz") as held:
        return np.asarray(held["X"])


def synthetic_chicago(seed: int) -> Planted:
    """Planted counts of the paper's Chicago size, 6186x24x77x32, about 5.3 M nonzeros, rank 10."""
    X, factors = datasets.events((6186, 24, 77, 32), 10, 6_100_000, random_state=seed)
    indices = np.stack(X.indices, axis=1).astype(np.int64)
    return Planted(SparseData(indices, X.values.astype(np.float64), X.shape), factors)
