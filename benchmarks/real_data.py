"""Real sparse tensors, and planted ones of the paper's size, as arrays every peer can take."""

from __future__ import annotations

import os
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
    return Planted(sparse_data(X), factors)
