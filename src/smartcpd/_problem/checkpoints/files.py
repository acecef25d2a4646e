"""A tree of plain data and arrays as one file, which is replaced whole or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.archives import archived
from smartcpd._common.atomic import replace_file
from smartcpd._common.hashing import digest
from smartcpd._problem.checkpoints.values import TAG
from smartcpd.errors import CheckpointError

HEADER = "checkpoint.json"
SUFFIX = ".checkpoint"
"""The file that says which fit a folder belongs to, and the ending of the others."""
TREE = "tree"
MAGIC = b"smartcpd checkpoint 1\n"
"""The first line of a file; two more have the mark of the fit and the digest of what follows."""


def write_tree(path: Path, tree: Any, mark: str) -> None:
    """Write a tree; ``mark`` is that of the fit and the part of it that it belongs to."""
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_without_arrays(tree, arrays)).encode()
    content = archived({TREE: np.frombuffer(text, np.uint8)} | arrays)
    head = f"{digest([mark.encode()])}\n{digest([content])}\n".encode()
    replace_file(path, MAGIC + head + content)


def read_tree(path: Path, mark: str) -> Any:
    """Return the tree that was written with the same mark."""
    whole = path.read_bytes()
    head, _, content = whole[len(MAGIC) :].partition(b"\n")
    told, _, content = content.partition(b"\n")
    if not whole.startswith(MAGIC) or told.decode(errors="replace") != digest([content]):
        raise CheckpointError(
            f"{path} is not a checkpoint, or is damaged. Begin the fit anew, without resuming."
        )
    if head.decode(errors="replace") != digest([mark.encode()]):
        raise CheckpointError(
            f"{path} is of another fit than the checkpoint.json beside it. Put back the file that "
            "belongs there, or begin the fit anew, without resuming."
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return _with_arrays(json.loads(arrays.pop(TREE).tobytes()), arrays)
    except Exception as error:  # NumPy lets errors of its parsers through, of many types
        raise CheckpointError(
            f"{path} was not written by smartcpd ({error}). Begin the fit anew, without resuming."
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
