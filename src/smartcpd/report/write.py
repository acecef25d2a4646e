"""Writing the page about a model to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smartcpd._common.atomic import replace_file
from smartcpd._fitting.consensus import Consensus, Stability
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import Readable, readable
from smartcpd._inference.diagnosis import Diagnosis
from smartcpd._inference.rank_check.verdict import RankVerdict
from smartcpd._problem.history import History, Status
from smartcpd.errors import InvalidParameterError
from smartcpd.quality import Quality
from smartcpd.report.page import render


def write_report(
    path: str | os.PathLike[str],
    model: CPModel | Readable,
    *,
    history: History | None = None,
    status: Status | None = None,
    quality: Quality | None = None,
    settings: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    command: str | None = None,
    title: str | None = None,
    stability: Consensus | Stability | None = None,
    diagnosis: Diagnosis | None = None,
    rank: RankVerdict | None = None,
    names: Mapping[int, str] | None = None,
    selection: Mapping[str, Any] | None = None,
) -> Path:
    """Write a page about a fitted model: one file of HTML that needs no network.

    Parameters
    ----------
    path : path
        The file, which is replaced whole or not at all. Its folder must exist.
    model : CPModel or Readable
        Labels of its modes are shown as they are, never run. A model in readable form, as the
        command line has it, is not made readable again.
    history, status : optional
        ``history_`` and ``status_`` of a fit: the curve of its loss, and why it ended.
    quality : Quality, optional
        What `smartcpd.quality.measure` found.
    settings : mapping, optional
        Shown as they are; those that `smartcpd.SmartCPD` takes also appear in the Python code that
        repeats the run.
    notes : sequence of str
        Sentences for the reader, such as how many rows of a table were left out, and why.
    command : str, optional
        The command line that repeats the run.
    title : str, optional
        By default the names of the modes.
    stability : Consensus or Stability, optional
        ``consensus_`` of a fit of several starts: how surely each component was found.
    diagnosis : Diagnosis, optional
        What `SmartCPD.diagnose` found.
    rank : RankVerdict, optional
        How the rank suits the data, as `smartcpd fit` finds out.
    names : mapping, optional
        Names of components by their numbers, counted from 1 in the order of their shares.
    selection : mapping, optional
        The ranks that were compared: ``recommendation`` and ``table`` of `smartcpd.select`.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel
    >>> from smartcpd.report import write_report
    >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson")
    >>> write_report("report.html", model).name
    'report.html'
    """
    file = Path(path)
    if not file.parent.is_dir():
        raise InvalidParameterError(
            f"Cannot write {file}: {file.parent} is not a directory. Create it first."
        )
    if isinstance(notes, str):
        raise InvalidParameterError(f"notes must be a list of sentences; got the text {notes!r}.")
    if isinstance(stability, Consensus):
        stability = stability.summary
    shown = model if isinstance(model, Readable) else readable(model)
    own = shown.model.rank
    if stability is not None and len(stability.values) != own:
        raise InvalidParameterError(
            f"stability tells of {len(stability.values)} components, and {shown.model!r} has "
            f"{own}. Pass the consensus_ of the same fit."
        )
    page = render(
        shown,
        history,
        status,
        quality,
        settings or {},
        notes,
        command,
        title,
        stability,
        diagnosis,
        rank,
        names,
        selection,
    )
    # A label may hold half of a surrogate pair, which UTF-8 cannot encode.
    replace_file(file, page.encode("utf-8", "replace"))
    return file
