"""Crime reports in Chicago: day x hour x community area x type of crime."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Literal

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd._data.storage import SparseTensor
from smartcpd._data.tns import read_tns
from smartcpd.datasets.files import DataFile
from smartcpd.datasets.real import RealData, counted
from smartcpd.errors import InvalidParameterError

SHAPE = (6186, 24, 77, 32)

FROSTT = DataFile(
    "The Chicago crime tensor of FROSTT",
    ("chicago-crime-comm.tns.gz", "chicago-crime-comm.tns"),
    "https://s3.us-east-2.amazonaws.com/frostt/frostt_data/chicago-crime/comm/"
    "chicago-crime-comm.tns.gz",
    "http://frostt.io/tensors/chicago-crime/",
    sha256=None,  # FROSTT publishes none, and the file was not at hand to compute it
)
TABLE_2022 = DataFile(
    "The table of Chicago crime reports of 2022 (date, hour, community_area, primary_type)",
    ("chicago_crime_2022.csv.gz",),
    "",
    "https://data.cityofchicago.org (Crimes - 2001 to Present, 1 January to 30 November 2022)",
    sha256="a6464504ab274417ee622223119720464a9fe8c148c2d57f0cbd36cd26738a0c",
)


def chicago_crime(
    which: Literal["auto", "frostt", "2022"] = "auto", *, fetch: bool = True
) -> RealData:
    """Return crime reports in Chicago, counted by day, hour, community area and type.

    Parameters
    ----------
    which : {"auto", "frostt", "2022"}
        "frostt" is the paper's tensor, 2001 to 2017, 6186x24x77x32 with 5,330,673 nonzeros (the
        paper prints 5,330,678). "2022" is made from a table of the reports of January to November
        2022, 334x24x77x31 with 202,313 nonzeros. "auto" is the first of the two that is in the
        folder ``SMARTCPD_DATA``, or else the paper's, fetched.
    fetch : bool
        Whether the network may be used.

    Returns
    -------
    RealData
        A `LabelledTensor`; ``source`` says which of the two it is.

    Notes
    -----
    Source: City of Chicago data portal, https://data.cityofchicago.org; the tensor of 2001 to 2017
    from FROSTT, http://frostt.io/tensors/chicago-crime/ (13 MB or so).
    Licence: the portal's terms of use ask for its disclaimer to be passed on: the data is provided
    by the city "for informational purposes", without warranty, and is modified from its original.
    Citation: S. Smith, J. W. Choi, J. Li, R. Vuduc, J. Park, X. Liu and G. Karypis, *FROSTT: The
    Formidable Repository of Open Sparse Tensors and Tools*, 2017.
    Without a network: put ``chicago-crime-comm.tns.gz`` (or ``chicago_crime_2022.csv.gz``) into a
    folder and set the environment variable ``SMARTCPD_DATA`` to it.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> [mode.name for mode in datasets.chicago_crime().modes]
    ['day', 'hour', 'community area', 'type']
    """
    if which not in ("auto", "frostt", "2022"):
        raise InvalidParameterError(f"which must be 'auto', 'frostt' or '2022'; got {which!r}.")
    if which == "2022" or (which == "auto" and not FROSTT.found() and TABLE_2022.found()):
        return _of_2022(TABLE_2022.path(fetch=False))  # the portal has no address for this period
    return _of_frostt(FROSTT.path(fetch))


def _of_frostt(path: Path) -> RealData:
    indices, values, shape = read_tns(path)
    tensor = SparseTensor(tuple(indices), values, shape)
    modes = (
        Mode("day", np.arange(1, shape[0] + 1), Kind.TIME),
        Mode("hour", np.arange(shape[1]), Kind.CYCLE),
        Mode("community area", np.arange(1, shape[2] + 1), Kind.CATEGORY),
        Mode("type", np.arange(1, shape[3] + 1), Kind.CATEGORY),
    )
    return RealData(tensor, modes, source="Chicago crime, 2001 to 2017 (FROSTT), the paper's data")


def _of_2022(path: Path) -> RealData:
    with gzip.open(path, "rt", newline="") as lines:
        dates, hours, areas, types = zip(*list(csv.reader(lines))[1:], strict=True)
    columns = (
        ("day", np.array(dates, dtype="datetime64[D]"), Kind.TIME),
        ("hour", np.array(hours, dtype=int), Kind.CYCLE),
        ("community area", np.array(areas, dtype=int), Kind.CATEGORY),
        ("type", np.array(types), Kind.CATEGORY),
    )
    source = "Chicago crime, January to November 2022 (the paper's covers 2001 to 2017)"
    return counted(columns, source)
