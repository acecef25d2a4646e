"""Paths, folders and patterns: which files are meant, and how DuckDB reads them."""

from __future__ import annotations

import glob
import gzip
import os
from dataclasses import dataclass
from pathlib import Path

from smartcpd._data.tables.sql import listed, literal
from smartcpd.errors import InvalidDataError

PACKED = (".gz", ".zst")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv")
PARQUET = (".parquet", ".pq")
OTHERS = {
    ".xlsx": "an Excel file; save it as CSV, or pass pandas.read_excel(path)",
    ".xls": "an Excel file; save it as CSV, or pass pandas.read_excel(path)",
    ".json": "JSON; pass pandas.read_json(path)",
    ".feather": "Arrow; pass pyarrow.feather.read_table(path)",
    ".arrow": "Arrow; pass pyarrow.feather.read_table(path)",
    ".zip": "an archive; unpack it first",
    ".pkl": "a pickle, which could run code; save it as Parquet",
}
HEAD = 1 << 16
UTF_16, LATIN = "utf-16", "latin-1"


@dataclass(frozen=True)
class Files:
    """Files of one format that make up one table."""

    name: str
    """The path or pattern as the user wrote it."""
    paths: tuple[str, ...]
    format: str
    """The ending that says how they are read."""

    @property
    def is_text(self) -> bool:
        return self.format not in PARQUET

    def encoding(self) -> str | None:
        """The encoding of text files, as far as their beginnings tell; None is UTF-8."""
        if not self.is_text:
            return None
        heads = [_head(path) for path in self.paths]
        if any(head.startswith((b"\xff\xfe", b"\xfe\xff")) for head in heads):
            return UTF_16
        return None if all(map(_is_utf8, heads)) else LATIN

    def reader(
        self,
        text_columns: tuple[str, ...] = (),
        header: bool | None = None,
        encoding: str | None = None,
    ) -> str:
        """Return the SQL function that reads the files; ``text_columns`` are read as text."""
        # DuckDB takes a path for a pattern unless its special characters are escaped.
        files = "[" + ", ".join(literal(glob.escape(path)) for path in self.paths) + "]"
        options = [files]
        if len(self.paths) > 1:
            options.append("union_by_name = true")
        if not self.is_text:
            return f"read_parquet({', '.join(options)})"
        options.append("store_rejects = true")
        if self.format in (".tsv", ".tab"):
            options.append("delim = '\t'")
        elif all(_is_parted_by_spaces(_head(path)) for path in self.paths):
            options.append("delim = ' '")
        if header is not None:
            options.append(f"header = {str(header).lower()}")
        if text_columns:
            types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in text_columns)
            options.append(f"types = {{{types}}}")
        if encoding is not None:
            options.append(f"encoding = {literal(encoding)}")
        return f"read_csv({', '.join(options)})"


def find_files(given: str | os.PathLike[str]) -> Files:
    """Return the files behind a path, a folder or a pattern; refuse those that cannot be one
    table.
    """
    name = os.fspath(given)
    paths = _matching(name)
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise InvalidDataError(
            f"{name!r} holds files of several formats ({', '.join(sorted(formats))}); name those "
            f"of one format, such as '*{sorted(formats)[0]}'."
        )
    files = Files(name, tuple(paths), formats.pop())
    for path in files.paths:
        _check_content(path, files.is_text)
    return files


def _matching(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        found = [
            str(p)
            for p in sorted(path.rglob("*"))
            if p.is_file()
            and _suffix(p.name) in (*TEXT, *PARQUET)
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
    if _head(path).startswith(b"PAR1"):
        return ".parquet"
    return suffix if suffix in (*TEXT, *PARQUET) else ".csv"


def _check_content(path: str, is_text: bool) -> None:
    if Path(path).stat().st_size == 0:
        raise InvalidDataError(f"File {path!r} is empty.")
    start = _head(path)
    if not is_text:
        if not start.startswith(b"PAR1"):
            raise InvalidDataError(
                f"{path!r} is not a Parquet file, though its name says so; if it is text, give it "
                "a name that ends with .csv."
            )
    elif b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidDataError(
            f"{path!r} is not a table in text form: it holds binary data. Tables are read from "
            f"{listed(['.csv', '.tsv', '.parquet'])} files."
        )


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # The last character may have been cut off.
        return len(head) == HEAD and error.start > HEAD - 4
    return True


def _is_parted_by_spaces(head: bytes) -> bool:
    """Whether all lines have as many words, and nothing but spaces separates them."""
    lines = head.splitlines()[:-1] if len(head) == HEAD else head.splitlines()
    if not lines or any(sign in lines[0] for sign in b',;|\t"'):
        return False
    counts = {len(line.split(b" ")) for line in lines}
    return len(counts) == 1 and counts.pop() > 1


def _head(path: str) -> bytes:
    """Return the first bytes of the text; files packed in another way than gzip are not
    unpacked.
    """
    try:
        if path.lower().endswith(".gz"):
            with gzip.open(path, "rb") as packed:
                return packed.read(HEAD)
        if path.lower().endswith(".zst"):
            return b""
        with open(path, "rb") as plain:
            return plain.read(HEAD)
    except (gzip.BadGzipFile, EOFError) as error:
        raise InvalidDataError(f"{path!r} is not a whole gzip file: {error}.") from None
    except OSError as error:
        raise InvalidDataError(f"{path!r} cannot be read: {error.strerror or error}.") from None
