"""``smartcpd convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from smartcpd._app.cli.console import say, stdout
from smartcpd._app.cli.inputs import load
from smartcpd._app.cli.table_options import TableOptions
from smartcpd._data.tables.account import WARNING

KEEP_LABELS = (".npz", ".nc", ".nc4", ".parts")
EXAMPLES = """\
Examples:

smartcpd convert counts.tns counts.npz

smartcpd convert 'runs.mat::X' runs.npy

smartcpd convert events.csv events.npz --modes date,area,type

smartcpd convert 'logs/*.parquet' logs.parts --modes time@1d,user,page
"""


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A tensor or a table.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Ends with .tns, .tns.gz, .npy, .npz, .zarr, .nc, .h5 or .parts."
        ),
    ],
    table: TableOptions,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Write a tensor in another format; .npz, .nc and .parts keep labels."""
    from smartcpd._data.files import format_of, is_tensor_file, write
    from smartcpd.errors import InvalidParameterError

    format_of(target)
    if target.exists() and not force:
        raise InvalidParameterError(
            f"{target} exists already; choose another name, or replace it with --force."
        )
    # Such a folder is for what may not fit in memory: a table goes there piece by piece.
    in_pieces = target.name.lower().endswith(".parts") and not is_tensor_file(source)
    X = load(source, table, target if in_pieces else None)
    for note in getattr(X, "notes", ()):
        if not note.startswith(WARNING):  # those were said when they were found
            say(note)
    if getattr(X, "modes", None) and not target.name.lower().endswith(KEEP_LABELS):
        say(f"{target.name} has no place for labels; .npz, .nc and .parts keep them.")
    if not in_pieces:
        write(target, X)
    stdout().print(Text(str(target)))
