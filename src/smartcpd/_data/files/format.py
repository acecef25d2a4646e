"""The parts of a file format, and what readers share: libraries, errors, the choice of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.storage import SparseStorage
from smartcpd.errors import InvalidDataError, InvalidParameterError, MissingExtraError

Tensor = SparseStorage | np.ndarray | LabelledTensor


@dataclass(frozen=True)
class Format:
    """A format, found by how the names of its files end.

    Parameters
    ----------
    title : str
        What a message calls it.
    suffixes : tuple of str
        Endings in lower case, with the dot.
    read : callable (path, member) -> tensor
        ``member`` is the array that the user asked for in a file of several, or None.
    write : callable (path, tensor), optional
        Absent for formats that are only read.
    """

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, str | None], Tensor]
    write: Callable[[Path, Any], None] | None = None


def library(path: Path, *names: str) -> Any:
    """Return the last of the modules that a format needs, all of which have to be installed."""
    try:
        return [import_module(name) for name in names][-1]
    except ImportError as error:
        purpose = f"Reading or writing {path.name}"
        raise MissingExtraError(str(error.name), "files", purpose) from None


def damaged(path: Path, title: str, error: Exception) -> InvalidDataError:
    """Return the error for a file that a library cannot read as what its name says."""
    lines = str(error).splitlines()
    said = lines[0].rstrip(".") if lines else type(error).__name__
    return InvalidDataError(
        f"{path} cannot be read as {title}: it is truncated, damaged or something else ({said})."
    )


def refuse_member(path: Path, member: str | None, content: str) -> None:
    """Raise an error if an array was asked for by name in a file that has only one."""
    if member is not None:
        raise InvalidParameterError(f"{path} is one {content}; leave out '::{member}'.")


def chosen_member(
    path: Path, asked: str | None, shapes: dict[str, Sequence[int]], names: Sequence[str]
) -> str:
    """Return the array to read: the one that was asked for, or the only one that is a tensor.

    ``shapes`` are those of the numeric arrays, ``names`` everything that the file holds.
    """
    if asked is not None:
        if asked in shapes:
            return asked
        state = "does not hold numbers" if asked in names else "is not there"
        raise InvalidDataError(
            f"{path}::{asked} {state}; its numeric arrays are {_listed(shapes) or 'none'}."
        )
    tensors = {name: s for name, s in shapes.items() if _is_tensor(s)}
    if len(tensors) == 1:
        return next(iter(tensors))
    if not tensors:
        raise InvalidDataError(
            f"{path} holds no numeric array with at least two modes, only "
            f"{', '.join(names) or 'nothing'}."
        )
    raise InvalidDataError(
        f"{path} holds several arrays, {_listed(tensors)}; choose one, for example "
        f"'{path}::{next(iter(tensors))}'."
    )


def _is_tensor(shape: Sequence[int]) -> bool:
    """Whether it is more than a number or a vector, which some formats write as a thin matrix."""
    return len(shape) >= 2 and sum(size != 1 for size in shape) >= 2


def _listed(shapes: dict[str, Sequence[int]]) -> str:
    return ", ".join(f"{name} ({'x'.join(map(str, shape))})" for name, shape in shapes.items())
