"""HDF5 files: one data set, chosen by name where there are several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.atomic import replaced
from smartcpd._common.memory import check_claim
from smartcpd._data.files.content import dense_array, real_array
from smartcpd._data.files.format import Format, chosen_member, damaged, library
from smartcpd.errors import InvalidDataError, SmartCPDError


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Yield the file as h5py sees it; refuse one that is no HDF5 file."""
    h5py = library(path, "h5py")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (SmartCPDError, MemoryError):
        raise
    except Exception as error:  # damage shows wherever h5py meets it, as errors of many types
        raise damaged(path, "HDF5", error) from None


def read_dataset(path: Path, member: str | None, accept: Callable[[str], bool]) -> np.ndarray:
    """Return a data set as an array; ``accept`` leaves out what the format uses for itself."""
    with opened(path) as file:
        found = _found(path, file, member, accept)
        check_claim(path, found.nbytes)
        return real_array(path, found[()])


def _read(path: Path, member: str | None) -> Any:
    """Return a data set without reading it; its file stays open as long as it is used."""
    with opened(path) as file:
        name = _found(path, file, member).name
    return library(path, "h5py").File(path, "r")[name]


def _found(
    path: Path, file: Any, member: str | None, accept: Callable[[str], bool] = lambda name: True
) -> Any:
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if hasattr(item, "shape") and accept(name):
            found[name] = item

    file.visititems(visit)
    shapes = {name: d.shape for name, d in found.items() if d.dtype.kind in "buif" and d.shape}
    if not shapes and len(found) == 1 and member is None:
        (only,) = found.values()
        real_array(path, np.empty(0, only.dtype))  # which says what it holds
    asked = None if member is None else member.strip("/")
    name = chosen_member(path, asked, shapes, list(found))
    if _lies_elsewhere(found[name]):
        raise _elsewhere(path, name)
    return found[name]


def check_within(path: Path) -> None:
    """Refuse a file that leads to others, for libraries that would follow it there."""
    h5py = library(path, "h5py")

    def visit(name: str, link: Any) -> str | None:
        # What is raised here gets lost in the library, which ends at the first answer.
        if isinstance(link, h5py.ExternalLink):
            return name
        item = file.get(name)
        return name if isinstance(item, h5py.Dataset) and _lies_elsewhere(item) else None

    with opened(path) as file:
        name = file.visititems_links(visit)
        if name is not None:
            raise _elsewhere(path, name)


def _lies_elsewhere(item: Any) -> bool:
    """Whether the numbers of a data set lie in other files, any of the machine."""
    return bool(item.external) or item.is_virtual


def _elsewhere(path: Path, name: str) -> InvalidDataError:
    return InvalidDataError(
        f"{path}::{name} lies in other files, to which {path.name} leads; a file that is read may "
        "not name others. If you trust it, open it with h5py and pass the data set."
    )


def _write(path: Path, X: Any) -> None:
    array = dense_array(path, X)
    h5py = library(path, "h5py")
    with replaced(path) as temporary, h5py.File(temporary, "w") as file:
        file.create_dataset("X", data=array, compression="gzip", compression_opts=4)


FORMAT = Format("HDF5", (".h5", ".hdf5"), _read, _write)
