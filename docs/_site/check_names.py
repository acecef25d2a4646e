"""Compare the public names with the inventory of a built site: `python check_names.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from public_names import public_names
from sphinx.util.inventory import InventoryFile


def documented_names(folder: Path) -> set[str]:
    """Return the names of Python objects that the site has entries for."""
    with (folder / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    kinds = (kind for kind in inventory.data if kind.startswith("py:"))
    return {name for kind in kinds for name in inventory.data[kind]}


if __name__ == "__main__":
    entries = documented_names(Path(sys.argv[1]))
    missing = sorted(public_names() - entries)
    print("\n".join(f"{name} has no entry" for name in missing) or "Every public name has an entry.")
    sys.exit(bool(missing))
