"""Reading data of any kind from a file: a tensor as it is, a table by its modes."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from smartcpd._app.cli.console import say
from smartcpd._app.cli.options import in_flags
from smartcpd._app.cli.table_options import TableOptions
from smartcpd._data.files import is_tensor_file, read, split
from smartcpd._data.tables.account import WARNING
from smartcpd._data.tables.remarks import quoted
from smartcpd._data.tables.wishes import joined, parted
from smartcpd.errors import InvalidParameterError


def load(
    file: str, options: TableOptions, out: Path | None = None, max_memory: str | None = None
) -> Any:
    """Return the tensor that a file holds or that a table makes; it goes straight to ``out`` if
    that is a folder of parts.
    """
    if is_tensor_file(file):
        if options.chosen():
            names = ", ".join(word for word in options.words() if word.startswith("--"))
            how = ""
            if options.modes:
                first = shlex.quote(f"mode 0={parted(options.modes)[0]}")
                how = f" Modes of an array are named by --name, such as --name {first}."
            raise InvalidParameterError(
                f"{names} is for tables, and {file} is a tensor already; leave it out.{how}"
            )
        return read(file, max_memory=max_memory)
    if not options.modes:
        raise InvalidParameterError(
            f"{file} is a table; say which columns are its modes, for example "
            f"--modes {_some_columns(file)}. 'smartcpd check {file}' shows all columns."
        )
    from smartcpd._data.tables import from_table

    X = from_table(file, **options.parameters(), out=out)
    for note in X.notes:
        if note.startswith(WARNING):
            say(note)
    return replace(X, notes=tuple(map(in_flags, X.notes)))


def opened(X: Any, max_memory: str | None) -> Any:
    """The storage of data as `load` gives it, with its labels if it has any; it is read part by
    part if it needs more memory than that."""
    from smartcpd._data.labelled import LabelledTensor
    from smartcpd._data.opening import as_storage

    if isinstance(X, LabelledTensor):
        return replace(X, tensor=as_storage(X.tensor, max_memory=max_memory))
    return as_storage(X, max_memory=max_memory)


def needs(X: Any, rank: int, loss: Any) -> list[str]:
    """Say in sentences what a fit part by part will take; nothing for data in memory."""
    from smartcpd._data.opening import as_storage

    storage = as_storage(X)
    found = storage.fit_needs(rank)
    if found is None:
        return []
    found.check()
    return [f"X is {storage.fit_needs(rank, loss)}."]


def refuse_values(X: Any, loss: Any, value: str | None) -> None:
    """Raise an error for zeros under a loss that goes to infinity there, and for numbers below zero
    in the column ``value`` of a table under a loss that knows none.
    """
    from smartcpd._data.opening import as_storage

    least, allowed = loss.data.value
    if value is not None and as_storage(X).lowest() < least:
        raise InvalidParameterError(
            f"A cell holds {as_storage(X).lowest():g}: leave rows below zero out with --where "
            f"{shlex.quote(f'{quoted(value)} >= 0')}, as loss '{loss}' needs {allowed}."
        )
    if not loss.allows_zeros and as_storage(X).lowest() == 0:
        raise InvalidParameterError(
            f"The data has zeros, and loss '{loss}' goes to infinity there. Use --loss "
            "'beta(0.5)', or leave those rows out with --where."
        )


def _some_columns(file: str) -> str:
    from smartcpd._data.tables.opening import opened

    with opened(file) as source:
        return shlex.quote(joined(list(source.columns)[:3]))


def stem(file: str) -> str:
    """Return the name of a file, without folders and endings."""
    if file == "-":
        return "stdin"
    path = split(file.partition("?")[0] if "://" in file else file)[0]
    if re.search(r"[*?\[]", path.name):
        path = path.parent
    name = Path(os.path.abspath(path)).name
    return (
        re.sub(
            r"(\.(gz|zst|zip|bz2|xz|csv|tsv|tab|txt|psv|dat|parquet|pq|json|jsonl|ndjson|feather|"
            r"arrow|xlsx|xlsm|xls|ods|db|sqlite3?|tns|np[yz]|mat|zarr|nc4?|h5|hdf5|parts))+$",
            "",
            name,
            flags=re.IGNORECASE,
        )
        or "data"
    )


def described(X: Any) -> str:
    """Describe the shape of a tensor, and what it stores if it is sparse."""
    shape = " x ".join(f"{size:,}" for size in X.shape)
    tensor = getattr(X, "tensor", X)
    nonzeros = f", {tensor.nnz:,} nonzeros" if hasattr(tensor, "nnz") else ""
    return f"{shape}{nonzeros}"


def source_facts(file: str, X: Any, fit: Any) -> dict[str, Any]:
    """Where the data of a fit came from, so that a run can be traced back to it."""
    from smartcpd._problem.checkpoints.identity import data_digest

    path, storage = split(file)[0], fit.problem.storage
    facts: dict[str, Any] = {
        "file": file,
        **({"date_format": dict(X.date_format)} if getattr(X, "date_format", None) else {}),
        "shape": list(storage.shape),
        "fingerprint": fit.fingerprint or data_digest(storage),
    }
    if path.is_file():
        about = path.stat()
        facts |= {"bytes": about.st_size, "modified": about.st_mtime}
    return facts
