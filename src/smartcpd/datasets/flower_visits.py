"""Visits of insects to flowers: pollinator x plant x day."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from smartcpd._data.labels import Kind
from smartcpd.datasets.files import DataFile
from smartcpd.datasets.real import RealData, counted
from smartcpd.errors import InvalidDataError

YEARS = range(2011, 2016)
OUTSIDE = ("BD", "BH", "BS", "CNE", "CNM", "CNT")
"""Meadows in the table that are not among the twelve of the paper."""
COLUMNS = ("MEADOW", "PLTSP_NAME", "VISSP_NAME")
PACKAGE = "https://pasta.lternet.edu/package/data/eml/knb-lter-and/5216/8"


def _first_table(package: str) -> str:
    """Return the address of the first table of a data package, whose name only its server knows."""
    with urlopen(package, timeout=30) as answer:
        return f"{package}/{answer.read().decode().split()[0]}"


SA026 = DataFile(
    "The table SA02601 of plant-pollinator interactions at the H. J. Andrews Experimental Forest",
    ("SA02601.csv", "SA02601_v6.csv", "SA02601_v2.csv"),
    PACKAGE,
    "https://portal.edirepository.org/nis/mapbrowse?packageid=knb-lter-and.5216.8",
    sha256=None,  # the file was not at hand to compute it
    address=_first_table,
)
TABLE_2014 = DataFile(
    "The table of visits of 2011 to 2014 (date, plant, visitor, guild, count)",
    ("pollinators_2011_2014.csv.gz",),
    "",
    SA026.page,
    sha256="636b9234774d0107c06da1b92e30897b603309abece040772d89fb9bc2ff5c9f",
)


def pollinators(*, fetch: bool = True) -> RealData:
    """Return how often an insect visited a plant on a day, in meadows of the Oregon Cascades.

    The study's own table is of the years 2011 to 2015; every row is a visit. Rows without the name
    of the plant or of the visitor are left out, and so are the six meadows that are not among the
    paper's twelve. Where the folder ``SMARTCPD_DATA`` has only the table of 2011 to 2014 with
    counts, ``pollinators_2011_2014.csv.gz``, that is taken.

    Parameters
    ----------
    fetch : bool
        Whether the network may be used.

    Returns
    -------
    RealData
        A `LabelledTensor`. The paper's is 562x124x123 with 8,370 nonzeros; the table has been
        revised since, so that a later edition gives somewhat different figures. That of 2011 to
        2014 gives 463x116x105 with 5,983 nonzeros; ``source`` says which it is.

    Notes
    -----
    Source: Andrews Forest LTER, database SA026, Environmental Data Initiative package
    knb-lter-and.5216, https://doi.org/10.6073/pasta/eec55cbc3dbfc56428629773737ab3e5.
    Licence: see the package's page; the LTER network asks users to cite the data and to tell its
    authors.
    Citation: E. Seo, J. A. Jones, R. A. Hutchinson and V. W. Pfeiffer, *Plant pollinator data at HJ
    Andrews Experimental Forest, 2011 to 2021*, version 8, Environmental Data Initiative, 2022.
    Without a network: download the first table of the package, put it as ``SA02601.csv`` into a
    folder and set the environment variable ``SMARTCPD_DATA`` to it.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> [mode.name for mode in datasets.pollinators().modes]
    ['pollinator', 'plant', 'day']
    """
    shorter = TABLE_2014.found()
    if shorter and not SA026.found():
        return _of_2014(shorter)
    visits = list(_visits(SA026.path(fetch)))
    if not visits:
        raise InvalidDataError(
            f"The table has no visits of {YEARS[0]} to {YEARS[-1]}; get it from {SA026.page}."
        )
    insects, plants, dates = zip(*visits, strict=True)
    columns = (
        ("pollinator", np.array(insects), Kind.CATEGORY),
        ("plant", np.array(plants), Kind.CATEGORY),
        ("day", np.array(dates, dtype="datetime64[D]"), Kind.TIME),
    )
    return counted(columns, "plant-pollinator network, 2011 to 2015 (Andrews Forest SA026)")


def _of_2014(path: Path) -> RealData:
    with gzip.open(path, "rt", newline="") as lines:
        dates, plants, visitors, _, counts = zip(*list(csv.reader(lines))[1:], strict=True)
    columns = (
        ("pollinator", np.array(visitors), Kind.CATEGORY),
        ("plant", np.array(plants), Kind.CATEGORY),
        ("day", np.array(dates, dtype="datetime64[D]"), Kind.TIME),
    )
    source = "plant-pollinator network, 2011 to 2014 (Andrews Forest SA026; the paper's to 2015)"
    return counted(columns, source, np.array(counts, dtype=np.int64))


def _visits(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield pollinator, plant and date of the rows that count."""
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as lines:
        reader = csv.DictReader(lines)
        names = {name.strip().upper(): name for name in reader.fieldnames or ()}
        date = next((name for key, name in names.items() if "DATE" in key), None)
        missing = [name for name in COLUMNS if name not in names]
        if missing or date is None:
            lacking = ", ".join(missing or ["DATE"])
            raise InvalidDataError(
                f"{path} has no column {lacking}, so it is not the table SA02601. "
                f"Get that from {SA026.page}."
            )
        meadow, plant, insect = (names[column] for column in COLUMNS)
        for row in reader:
            day = _day(row[date])
            named = row[plant].strip() and row[insect].strip()
            if named and day and int(day[:4]) in YEARS and row[meadow].strip() not in OUTSIDE:
                yield row[insect].strip(), row[plant].strip(), day


def _day(text: str) -> str:
    """Return the date of "2011-07-02", "2011-07-02 10:15:00" or "7/2/2011 10:15"."""
    date = text.strip().replace("T", " ").split(" ")[0]
    if "/" not in date:
        return date
    month, day, year = date.split("/")
    return f"{int(year):04d}-{int(month):02d}-{int(day):02d}"
