"""Amounts of memory: reading and writing them as text, and finding how much there is."""

from __future__ import annotations

import ctypes
import os
import re
from typing import Any

from smartcpd.errors import InvalidDataError, InvalidParameterError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
DEFAULT_SHARE = 0.5
"""The share of the machine's memory that a fit may use unless the user says otherwise."""

UNTOLD = 4 * 10**9
"""Bytes that a machine is taken to have if its system does not tell."""


def amount(name: str, value: Any) -> int:
    """Bytes, from a whole number or text such as ``"1GB"``, ``"512 MB"`` or ``"2GiB"``."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?i?)b?\s*", value.lower())
        unit = (UNITS | BINARY_UNITS).get(found[2]) if found else None
        if found and unit and float(found[1]) > 0:
            return int(float(found[1]) * unit)
    raise InvalidParameterError(
        f'{name} must be an amount of memory such as "4GB", or a number of bytes; got {value!r}.'
    )


def budget(max_memory: str | int | None) -> int:
    """The bytes that a fit may use: what the user says, or half of what the machine has."""
    if max_memory is not None:
        return amount("max_memory", max_memory)
    return int(DEFAULT_SHARE * of_machine())


def of_machine() -> int:
    """Bytes of memory that this process may have: the machine's, or its container's share."""
    physical = _physical()
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as limit:
                return min(physical, int(limit.read()))
        except (OSError, ValueError):  # no such limit
            continue
    return physical


def _physical() -> int:
    """Bytes of memory of the machine, by what its system offers to ask."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _physical_on_windows() or UNTOLD


def _physical_on_windows() -> int:
    """Bytes of memory as Windows tells them; 0 where this is not Windows."""
    library = getattr(ctypes, "windll", None)
    if library is None:
        return 0
    status = _MemoryStatus(size=ctypes.sizeof(_MemoryStatus))
    told = library.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.physical) if told else 0


class _MemoryStatus(ctypes.Structure):
    """Windows' MEMORYSTATUSEX."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("physical", ctypes.c_uint64),
        *((f"other_{k}", ctypes.c_uint64) for k in range(6)),
    ]


def check_claim(what: object, n_bytes: int) -> None:
    """Raise an error if a file claims more than the machine has, before anything is read."""
    if n_bytes > of_machine():
        raise InvalidDataError(
            f"{what} claims to hold {readable(n_bytes)}, and this machine has "
            f"{readable(of_machine())} of memory. Pass a part of it, or store it as Zarr or HDF5, "
            "which are read in parts."
        )


def readable(n_bytes: float) -> str:
    """An amount as people write it: ``"1.5 GB"``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
