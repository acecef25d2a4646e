"""``smartcpd predict``."""

from __future__ import annotations

import csv
import sys
from typing import Annotated, Any

import numpy as np
import typer

from smartcpd._app.cli.console import print_json, say
from smartcpd._app.cli.options import Json, RunPath
from smartcpd._app.cli.table_options import ReadingOptions
from smartcpd._common.spreadsheets import inert
from smartcpd._inference.wording import counted

AS_FITTED = ("encoding", "date_format", "decimal", "thousands", "na")

EXAMPLES = """\
Examples:

smartcpd predict chicago-smartcpd --at cells.csv

smartcpd predict chicago-smartcpd --at new.parquet --value n --json
"""


def predict(
    folder: RunPath,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="FILE",
            help="A table with a column for each mode, a cell a row; dates, times and numbers that "
            "were binned may be any in the bin.",
        ),
    ],
    value: Annotated[
        str | None,
        typer.Option(
            "--value",
            help="Column with the values that were observed; by default the one that was fitted.",
        ),
    ] = None,
    *,
    reading: ReadingOptions,
    json: Json = False,
) -> None:
    """Expected values of cells, and how surprising observed ones are.

    Prints the table as CSV with two more columns: 'mean', the expected value, and, where values are
    given, 'surprise': the two-sided tail probability of the value under the fitted distribution,
    near 0 for values that the model did not expect.
    """
    from smartcpd._app.run_folder import RunFolder
    from smartcpd._app.run_folder.cells import read_cells

    run = RunFolder(folder).load()
    fitted, bins = run.settings.get("value"), run.settings.get("bins")
    # The table is taken to be written as the one that was fitted, unless the user says how.
    same = {name: run.settings[name] for name in AS_FITTED if name in run.settings}
    dates = {**run.data.get("date_format", {}), **same.get("date_format", {})}
    written = same | {"date_format": dates or None} | reading.chosen()
    modes = run.model.named_modes
    cells = read_cells(at, modes, value, fitted, bins, written, run.names_in_data)
    mean, surprise = _predicted(run, cells)
    if cells.unknown:
        say(
            f"{cells.unknown:,} of {len(mean):,} rows have no mean: "
            f"{', '.join(cells.examples)} did not occur in the fit."
        )
    known = len(mean) - cells.unknown
    if cells.values is not None and cells.different < known:
        say(
            f"{known:,} rows fall into {counted(cells.different, 'cell')}, and each row is taken "
            "as a whole cell; add their values up first if they are parts of one."
        )
    headings = [mode.name for mode in run.model.named_modes]
    columns: list[list[Any]] = [list(texts) for texts in cells.texts]
    figures = ((cells.value_name, cells.values), ("mean", mean), ("surprise", surprise))
    for heading, numbers in figures:
        if numbers is not None:
            headings.append(heading)
            columns.append(_optional(numbers))
    rows = zip(*columns, strict=True)
    if json:
        print_json([dict(zip(headings, row, strict=True)) for row in rows])
        return
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(map(inert, headings))
    out.writerows([_cell(x) for x in row] for row in rows)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return inert(value) if isinstance(value, str) else value


def _predicted(run: Any, cells: Any) -> tuple[np.ndarray, np.ndarray | None]:
    known = (cells.rows >= 0).all(axis=1)
    mean = np.full(len(known), np.nan)
    mean[known] = run.model.mean(cells.rows[known])
    if cells.values is None:
        return mean, None
    surprise = np.full(len(known), np.nan)
    m = run.model.values(cells.rows[known])
    loss = run.model.loss_function
    surprise[known] = loss.tail_probability(cells.values[known], m, run.dispersion)
    return mean, surprise


def _optional(numbers: np.ndarray) -> list[float | None]:
    return [None if np.isnan(x) else float(f"{x:.6g}") for x in numbers]
