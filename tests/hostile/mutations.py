"""Damage to files, from a seed: bytes, arrays in archives, values in JSON."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ODD = [None, True, -1, 0, 7, 2**31, 2**63, 10**40, 1.5, 1e308, -1e-320, "", "x", "../x", [], {}]
"""Values that a field of JSON hardly ever has."""


def damaged_bytes(content: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, gone, doubled or zero."""
    data = bytearray(content)
    kind = chance.choice(["flip", "flip", "flips", "cut", "zeros", "doubled", "ones"])
    at = chance.randrange(len(data))
    if kind == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "flips":
        for _ in range(8):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == "cut":
        del data[at:]
    elif kind == "doubled":
        data[at:at] = data[at : at + chance.randrange(1, 64)]
    else:
        stop = min(len(data), at + chance.randrange(1, 32))
        data[at:stop] = bytes([0 if kind == "zeros" else 255]) * (stop - at)
    return bytes(data)


def damaged_archive(content: bytes, chance: random.Random) -> bytes:
    """A whole npz in which one array lies: other numbers, another length, another type."""
    arrays = dict(np.load(io.BytesIO(content), allow_pickle=False))
    name = chance.choice(sorted(arrays))
    arrays[name] = _other_array(arrays[name], chance)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _other_array(array: np.ndarray, chance: random.Random) -> np.ndarray:
    kind = chance.choice(["value", "value", "value", "shorter", "longer", "float", "text", "flat"])
    if kind == "value" and array.size and array.dtype.kind in "iuf":
        other = np.array(array)
        largest = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.inf
        other.flat[chance.randrange(array.size)] = min(
            largest, chance.choice([largest, largest // 2, 999])
        )
        return other
    if kind == "shorter":
        return array[:-1] if array.ndim else array.reshape(1)[:0]
    if kind == "longer":
        return np.concatenate([array.reshape(-1)] * 2)
    if kind == "float":
        return np.full(array.shape, np.nan)
    return np.full(array.shape, "x") if kind == "text" else array.reshape(-1)


def damaged_json(content: bytes, chance: random.Random) -> bytes:
    """The same JSON with a value replaced by an odd one, or left out."""
    tree = json.loads(content)
    places = list(_places(tree))
    if not places:
        return b"[]"
    inside, key = chance.choice(places)
    if chance.random() < 0.2:
        del inside[key]
    else:
        inside[key] = chance.choice(ODD)
    return json.dumps(tree).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def ways(path: Path) -> list[Callable[[bytes, random.Random], bytes]]:
    """The ways in which a file may be damaged; those that leave its form whole come twice."""
    if path.suffix == ".npz" and zipfile.is_zipfile(path):
        return [damaged_bytes, damaged_archive, damaged_archive]
    if path.suffix == ".json" or path.name.startswith(".z"):
        return [damaged_bytes, damaged_json, damaged_json]
    return [damaged_bytes]
