"""Compare the public names with the inventory of a built site: `python check_names.py FOLDER`."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

from public_names import public_names


def documented_names(folder: Path) -> set[str]:
    """Return the names of Python objects that the site has entries for."""
    inventory = (folder / "objects.inv").read_bytes()
    packed = inventory.split(b"\n", 4)[4]  # four lines say what it is
    lines = zlib.decompress(packed).decode("utf-8").splitlines()
    return {name for name, kind, *_ in map(str.split, lines) if kind.startswith("py:")}


if __name__ == "__main__":
    entries = documented_names(Path(sys.argv[1]))
    missing = sorted(public_names() - entries)
    print(
        "\n".join(f"{name} has no entry" for name in missing) or "Every public name has an entry."
    )
    sys.exit(bool(missing))
