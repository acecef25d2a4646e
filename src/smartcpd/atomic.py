"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it sees all of it, or all of what it was before."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
