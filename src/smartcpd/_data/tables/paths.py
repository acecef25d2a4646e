"""Paths, folders and patterns: which files are meant, and how they are read."""

from __future__ import annotations

import glob
import os
import re
from codecs import BOM_UTF8
from dataclasses import dataclass, replace
from pathlib import Path

from smartcpd._data.tables.sql import listed, literal
from smartcpd._data.tables.unpacking import WORKBOOKS, binary, encoding_of, local, unpacked
from smartcpd._data.tables.workbooks import from_sqlite, from_workbook
from smartcpd.errors import InvalidDataError

PACKED = (".gz", ".zst")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv", ".dat")
PARQUET = (".parquet", ".pq")
JSON = (".json", ".jsonl", ".ndjson", ".geojson")
ARROW = (".feather", ".arrow", ".ipc")
SQLITE = (".db", ".sqlite", ".sqlite3", ".db3")
FORMATS = (
    *((suffix, "text") for suffix in TEXT),
    *((suffix, "parquet") for suffix in PARQUET),
    *((suffix, "json") for suffix in JSON),
    *((suffix, "arrow") for suffix in ARROW),
    *((suffix, "sqlite") for suffix in SQLITE),
    *((suffix, "workbook") for suffix in WORKBOOKS),
)
MEMBER = "::"
"""The sign between a file and what is meant inside it."""
OTHERS = {
    ".pkl": "a pickle, which could run code; save it as Parquet",
    ".rds": "a file of R; save it as CSV there",
    ".rdata": "a file of R; save it as CSV there",
    ".sav": "a file of SPSS; save it as CSV there, or pass pandas.read_spss(path)",
    ".dta": "a file of Stata; save it as CSV there, or pass pandas.read_stata(path)",
    ".tar": "an archive; unpack it first",
    ".tgz": "an archive; unpack it first",
    ".7z": "an archive; unpack it first",
    ".rar": "an archive; unpack it first",
    ".pdf": "a document; tables are read from .csv, .xlsx or .parquet files",
}
HEAD = 1 << 17


@dataclass(frozen=True)
class Files:
    """Files of one format that make up one table."""

    name: str
    """The path or pattern as the user wrote it."""
    paths: tuple[str, ...]
    format: str
    """How they are read: text, parquet, json or arrow."""
    delimiter: str | None = None
    header: bool | None = None
    """Whether the first line has the names, where that is known."""
    notes: tuple[str, ...] = ()
    made_from: str = ""
    """What the text was made from, if not by the user: a workbook or a database."""

    @property
    def listed(self) -> str:
        """The paths as SQL."""
        # DuckDB takes a path for a pattern unless its special characters are escaped.
        return "[" + ", ".join(literal(glob.escape(path)) for path in self.paths) + "]"


def find_files(given: str | os.PathLike[str], folder: str) -> Files:
    """Return the files behind a path, a folder, a pattern, a URL or standard input; refuse those
    that cannot be one table. What must be unpacked goes to the folder.
    """
    name = os.fspath(given)
    path, member = local(name, folder), None
    if MEMBER in path and not Path(path).exists():
        path, _, member = path.rpartition(MEMBER)
    plain = [unpacked(found, member, folder) for found in _matching(path)]
    formats = {_format(found) for found, _ in plain}
    if len(formats) > 1:
        endings = sorted({_suffix(found) for found, _ in plain})
        raise InvalidDataError(
            f"{name!r} holds files of several formats ({', '.join(endings)}); name those of one "
            f"format, such as '*{endings[0]}'."
        )
    (form,) = formats
    if form in ("workbook", "sqlite"):
        return _converted(name, plain, form, folder)
    if any(inner is not None for _, inner in plain):
        raise InvalidDataError(f"{path!r} is one table; leave out '{MEMBER}{member}'.")
    files = Files(name, tuple(found for found, _ in plain), form)
    for found in files.paths:
        _check_content(found, form)
    if form == "text" and {_suffix(found) for found in files.paths} <= {".tsv", ".tab"}:
        return replace(files, delimiter="\t")
    return files


def _converted(name: str, plain: list[tuple[str, str | None]], form: str, folder: str) -> Files:
    if len(plain) > 1:
        raise InvalidDataError(f"{name!r} matches {len(plain)} files of this kind; name one.")
    ((path, member),) = plain
    _check_content(path, form)
    if form == "sqlite":
        sheet = from_sqlite(path, member, folder)
        return Files(name, (sheet,), "text", ",", True, made_from="a database")
    sheet, notes = from_workbook(path, member, folder)
    return Files(name, (sheet,), "text", ",", None, tuple(notes), "a workbook")


def _matching(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        found = [
            str(p)
            for p in sorted(path.rglob("*"))
            if p.is_file()
            and _suffix(p.name) in (*TEXT, *PARQUET, *JSON)
            and not any(part.startswith((".", "_")) for part in p.relative_to(path).parts)
        ]
        if not found:
            raise InvalidDataError(f"Folder {name!r} holds no CSV, TSV or Parquet file.")
        return found
    if path.is_file():
        return [name]
    if path.exists():
        raise InvalidDataError(f"{name!r} is neither a file nor a folder.")
    found = [p for p in sorted(glob.glob(name, recursive=True)) if Path(p).is_file()]
    if not found:
        what = "No file matches" if glob.has_magic(name) else "There is no file or folder"
        raise InvalidDataError(f"{what} {name!r}; check the path.")
    return found


def _suffix(name: str) -> str:
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def _format(path: str) -> str:
    suffix = _suffix(path)
    if suffix in OTHERS:
        raise InvalidDataError(f"{path!r} is {OTHERS[suffix]}.")
    start = head(path)
    for magic, form in ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"SQLite format 3", "sqlite")):
        if start.startswith(magic):
            return form
    if start.startswith(b"PK\x03\x04") or suffix in WORKBOOKS:
        return "workbook"
    form = dict(FORMATS).get(suffix, "text")
    if form == "text" and re.match(rb"\s*(\{\s*\"|\[\s*\{\s*\")", start.removeprefix(BOM_UTF8)):
        return "json"
    return form


def _check_content(path: str, form: str) -> None:
    if Path(path).stat().st_size == 0:
        raise InvalidDataError(f"File {path!r} is empty.")
    start = head(path)
    if form == "parquet" and not start.startswith(b"PAR1"):
        raise InvalidDataError(
            f"{path!r} is not a Parquet file, though its name says so; if it is text, give it "
            "a name that ends with .csv."
        )
    if form == "text" and b"\0" in start and encoding_of(start, len(start) < HEAD) is None:
        raise InvalidDataError(
            f"{path!r} is not a table in text form: it holds binary data. Tables are read from "
            f"{listed(['.csv', '.tsv', '.parquet', '.xlsx', '.json', '.db'])} files."
        )


def head(path: str) -> bytes:
    """Return the first bytes of a file that may be packed by gzip; none for Zstandard."""
    if path.lower().endswith(".zst"):
        return b""
    with binary(path) as file:
        return file.read(HEAD)
