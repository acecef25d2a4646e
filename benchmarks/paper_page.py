"""Puts the page of the paper's experiments, with its pictures, into docs.

``python -m benchmarks.paper_page FOLDER``, where FOLDER holds what ``smartcpd paper`` has run.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from smartcpd._app.paper import page

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURE = re.compile(r"\]\(([\w-]+)/([\w=.-]+\.png)\)")


def publish(out: Path, docs: Path = DOCS) -> Path:
    """Write paper.md and its pictures; those of an earlier page are removed."""
    text = page.write(out)[0].read_text()
    for old in (docs / "images").glob("paper-*.png"):
        old.unlink()
    for folder, name in PICTURE.findall(text):
        shutil.copyfile(out / folder / name, docs / "images" / f"paper-{name}")
    target = docs / page.NAME
    target.write_text(PICTURE.sub(r"](images/paper-\2)", text))
    return target


if __name__ == "__main__":
    print(publish(Path(sys.argv[1])))
