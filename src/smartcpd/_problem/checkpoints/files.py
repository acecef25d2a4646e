"""A tree of plain data and arrays as one file, which is replaced whole or not at all."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.atomic import replace_file
from smartcpd._problem.checkpoints.values import TAG
from smartcpd.errors import CheckpointError

TREE = "tree"


def write_tree(path: Path, tree: Any) -> None:
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_without_arrays(tree, arrays)).encode()
    buffer = io.BytesIO()
    np.savez(buffer, **{TREE: np.frombuffer(text, np.uint8)}, **arrays)  # type: ignore[arg-type]
    replace_file(path, buffer.getvalue())


def read_tree(path: Path) -> Any:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return _with_arrays(json.loads(arrays.pop(TREE).tobytes()), arrays)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not a checkpoint, or is damaged ({error}). Begin the fit anew, without "
            "resuming."
        ) from error


def _without_arrays(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(tree, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = tree
        return {TAG: "array", "of": name}
    if isinstance(tree, dict):
        return {key: _without_arrays(part, arrays) for key, part in tree.items()}
    if isinstance(tree, list):
        return [_without_arrays(part, arrays) for part in tree]
    return tree


def _with_arrays(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(tree, dict):
        if tree.get(TAG) == "array":
            return arrays[tree["of"]]
        return {key: _with_arrays(part, arrays) for key, part in tree.items()}
    if isinstance(tree, list):
        return [_with_arrays(part, arrays) for part in tree]
    return tree
