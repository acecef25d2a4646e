"""Messages between students: sender x receiver x day, yes or no."""

from __future__ import annotations

import gzip

import numpy as np

from smartcpd._common.parameters import check_integer
from smartcpd._data.labels import Kind, Mode
from smartcpd._data.storage import SparseTensor
from smartcpd.datasets.files import DataFile
from smartcpd.datasets.real import RealData
from smartcpd.errors import InvalidParameterError

SECONDS_A_DAY = 86_400
COLLEGE_MSG = DataFile(
    "SNAP's table CollegeMsg",
    ("CollegeMsg.txt.gz", "CollegeMsg.txt", "collegemsg.txt.gz"),
    "https://snap.stanford.edu/data/CollegeMsg.txt.gz",
    "https://snap.stanford.edu/data/CollegeMsg.html",
    sha256=None,  # SNAP publishes none; the copy at hand has a line of names on top
)


def uci_chat(n_senders: int = 400, *, fetch: bool = True) -> RealData:
    """Return who wrote to whom on which day at the University of California, Irvine, in 2004.

    The messages are those among the most prolific senders (the lower id wins a tie); days of 24
    hours are counted from the first of these messages. A cell is 1 if there was a message.

    Parameters
    ----------
    n_senders : int
        How many people.
    fetch : bool
        Whether the network may be used.

    Returns
    -------
    RealData
        A `LabelledTensor`, 400x400x188 with 18,385 nonzeros for 400 people. The paper prints
        400x400x196 with 18,862; the table spans 193.7 days, and neither calendar days nor another
        choice of people gives that figure.

    Notes
    -----
    Source: SNAP, https://snap.stanford.edu/data/CollegeMsg.html, 59,835 messages of 1,899 people.
    Licence: none is stated; SNAP and the author ask to be cited.
    Citation: P. Panzarasa, T. Opsahl and K. M. Carley, *Patterns and dynamics of users' behavior
    and interaction: network analysis of an online community*, JASIST 60(5), 2009.
    Without a network: put ``CollegeMsg.txt.gz`` into a folder and set the environment variable
    ``SMARTCPD_DATA`` to it.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> datasets.uci_chat().tensor.shape
    (400, 400, 188)
    """
    check_integer("n_senders", n_senders, at_least=2)
    messages = _messages(fetch)
    ids, sent = np.unique(messages[:, 0], return_counts=True)
    if n_senders > len(ids):
        raise InvalidParameterError(
            f"n_senders={n_senders}, but only {len(ids)} people sent a message; ask for fewer."
        )
    people = np.sort(ids[np.argsort(-sent, kind="stable")[:n_senders]])
    among = messages[np.isin(messages[:, :2], people).all(axis=1)]
    sender, receiver = np.searchsorted(people, among[:, :2]).T
    first = among[:, 2].min()
    day = (among[:, 2] - first) // SECONDS_A_DAY
    shape = (n_senders, n_senders, int(day.max()) + 1)
    cells = np.unique(np.ravel_multi_index((sender, receiver, day), shape))
    began = np.datetime64(int(first), "s")
    modes = (
        Mode("sender", people, Kind.CATEGORY),
        Mode("receiver", people, Kind.CATEGORY),
        Mode("day", began + np.arange(shape[2]) * np.timedelta64(SECONDS_A_DAY, "s")),
    )
    tensor = SparseTensor(np.unravel_index(cells, shape), np.ones(len(cells), np.uint8), shape)
    return RealData(tensor, modes, source="UCI chat network, 2004 (SNAP CollegeMsg)")


def _messages(fetch: bool) -> np.ndarray:
    """Return sender, receiver and Unix time, with or without a line of names on top."""
    path = COLLEGE_MSG.path(fetch)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        has_names = not next(lines).split()[0].isdigit()
    return np.loadtxt(path, dtype=np.int64, ndmin=2, skiprows=int(has_names))
