"""Files made readable: fetched, unpacked and, where needed, written anew as plain text in UTF-8."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from smartcpd._data.tables.sql import listed
from smartcpd.errors import InvalidDataError

MAGIC = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\x03\x04": ".zip",
}
"""How packed files begin."""
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
TIMEOUT = 30.0
PIECE = 1 << 20


def local(name: str, folder: str) -> str:
    """Return the path of data that comes from standard input or a URL, or the name as it is."""
    if name == "-":
        target = Path(folder) / "stdin"
        with target.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        if target.stat().st_size == 0:
            raise InvalidDataError("There is nothing on standard input.")
        return str(target)
    scheme, colon, _ = name.partition("://")
    if not colon or not scheme.isalnum():
        return name
    if scheme.lower() not in ("http", "https"):
        raise InvalidDataError(
            f"{name!r} is not fetched: tables come from files and from http or https; fetch it "
            "with another program first."
        )
    return _fetched(name, folder)


def _fetched(url: str, folder: str) -> str:
    from urllib.error import URLError
    from urllib.parse import unquote, urlsplit
    from urllib.request import urlopen

    target = Path(folder) / (Path(unquote(urlsplit(url).path)).name or "table")
    try:
        with urlopen(url, timeout=TIMEOUT) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except (URLError, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise InvalidDataError(
            f"{url!r} cannot be fetched ({why}); check the address and the network, or fetch the "
            "file with another program and name that."
        ) from None
    return str(target)


def unpacked(path: str, member: str | None, folder: str) -> tuple[str, str | None]:
    """Return the path of the plain file in an archive, and what is still to be found inside it.

    What DuckDB unpacks itself stays as it is.
    """
    kind = _packing(path)
    if kind == ".zip":
        return _from_zip(path, member, folder), None
    if kind in (".bz2", ".xz") or (kind == ".gz" and not path.lower().endswith(".gz")):
        name = Path(path).name
        target = Path(folder) / (name[: -len(kind)] if name.lower().endswith(kind) else name)
        target = _new(target)
        with binary(path, kind) as packed, target.open("wb") as out:
            shutil.copyfileobj(packed, out)
        return str(target), member
    return path, member


def _packing(path: str) -> str:
    """Return the ending that goes with how a file begins; workbooks are archives too."""
    if path.lower().endswith(WORKBOOKS):
        return ""
    with open(path, "rb") as file:
        start = file.read(8)
    found = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "")
    if found == ".zip" and _is_workbook(path):
        return ""
    suffix = Path(path.lower()).suffix
    return found or (suffix if suffix in (*OPENERS, ".zip") else "")


def _is_workbook(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _from_zip(path: str, member: str | None, folder: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [
                info.filename
                for info in archive.infolist()
                if not info.is_dir() and not info.filename.startswith(("__MACOSX/", "."))
            ]
            chosen = _chosen(path, member, names)
            target = _new(Path(folder) / Path(chosen).name)
            free = shutil.disk_usage(folder).free
            if archive.getinfo(chosen).file_size > free:
                raise InvalidDataError(
                    f"{path!r} unpacks to {archive.getinfo(chosen).file_size / 1e9:,.1f} GB, and "
                    f"{free / 1e9:,.1f} GB are free for temporary files; unpack it elsewhere."
                )
            with archive.open(chosen) as packed, target.open("wb") as out:
                shutil.copyfileobj(packed, out)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise InvalidDataError(f"{path!r} is not a whole zip archive: {error}.") from None
    return str(target)


def _chosen(path: str, member: str | None, names: list[str]) -> str:
    if member is not None:
        if member not in names:
            raise InvalidDataError(f"There is no {member!r} in {path!r}; it holds {listed(names)}.")
        return member
    tables = [name for name in names if Path(name.lower()).suffix not in (".pdf", ".md", ".html")]
    if len(tables) > 1:
        tables = [n for n in tables if "readme" not in n.lower()] or tables
    if len(tables) != 1:
        raise InvalidDataError(
            f"{path!r} holds {len(tables)} files; choose one, such as "
            f"'{path}::{tables[0]}', of {listed(tables)}."
            if tables
            else f"{path!r} holds no file."
        )
    return tables[0]


def _new(path: Path) -> Path:
    """Return a path where nothing is yet."""
    number = 0
    chosen = path
    while chosen.exists():
        number += 1
        chosen = path.with_name(f"{number}-{path.name}")
    return chosen


@contextmanager
def binary(path: str, packing: str | None = None) -> Iterator[IO[bytes]]:
    """Yield the bytes of a file that may be packed, in a way that its name tells unless it is
    given; damage is told in one sentence.
    """
    packing = packing or Path(path.lower()).suffix
    opener = OPENERS.get(packing, open)
    try:
        with opener(path, "rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error) as error:
        kind = {".bz2": "bzip2", ".xz": "xz"}.get(packing, "gzip")
        raise InvalidDataError(f"{path!r} is not a whole {kind} file: {error}.") from None
    except OSError as error:
        raise InvalidDataError(f"{path!r} cannot be read: {error.strerror or error}.") from None


def rewritten(path: str, encoding: str, folder: str, squeezed: bool = False) -> str:
    """Write a text file anew in UTF-8, with one kind of line break; return where it is.

    If it is ``squeezed``, blanks that align columns become one each.
    """
    target = _new(Path(folder) / (Path(path).name.removesuffix(".gz") + ".utf8"))
    with binary(path) as packed, target.open("w", encoding="utf-8", newline="\n") as out:
        # Bytes that the encoding does not know become the sign for that.
        text = io.TextIOWrapper(packed, encoding=encoding, errors="replace", newline=None)
        if squeezed:
            out.writelines(" ".join(line.split()) + "\n" for line in text)
        while piece := text.read(PIECE):
            out.write(piece.removeprefix("\ufeff") if out.tell() == 0 else piece)
        text.detach()
    return str(target)


def encoding_of(head: bytes, whole: bool) -> str | None:
    """Return the encoding that the beginning of a file tells of; None for UTF-8."""
    marks = {
        b"\xff\xfe\x00\x00": "utf-32",
        b"\x00\x00\xfe\xff": "utf-32",
        b"\xff\xfe": "utf-16",
        b"\xfe\xff": "utf-16",
    }
    for mark, encoding in marks.items():
        if head.startswith(mark):
            return encoding
    if b"\0" in head[:1000]:
        sample = head[: len(head) // 2 * 2]
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        most = len(sample) // 2 * 0.4
        return "utf-16-le" if odd > most > even else "utf-16-be" if even > most > odd else None
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if not whole and error.start > len(head) - 4:
            return None
        return western(head)
    return None


UNKNOWN = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
"""Bytes that mean nothing in Windows-1252."""


def western(text: bytes) -> str:
    """Return which encoding text has that is not UTF-8 throughout.

    Single bytes among many whole characters of UTF-8 are damage.
    """
    decoded = text.decode(errors="replace")
    damaged = decoded.count("\ufffd")
    if sum(ord(c) > 127 for c in decoded) - damaged > 10 * damaged:
        return "utf-8"
    foreign = sum(map(len, re.findall(rb"[\x80-\xff]{3,}", text)))
    if UNKNOWN & set(text) or 2 * foreign > sum(byte > 127 for byte in text):
        # Letters beyond ASCII stand between others in Western languages.
        raise InvalidDataError(
            "The text is neither in UTF-8 nor in an encoding of Western languages; say which it "
            "is, as by encoding='cp1251', 'shift_jis', 'gb18030' or 'euc_kr'."
        )
    controls = set(range(0x80, 0xA0))
    return "cp1252" if controls & set(text) else "latin-1"
