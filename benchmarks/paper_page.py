"""Puts the page of the paper's experiments, with its pictures, into docs.

``python -m benchmarks.paper_page`` reads the runs that are kept beside the other results, to which
``smartcpd paper NAME --out benchmarks/results/paper`` adds; another folder can be named instead.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from smartcpd._app.paper import page

KEPT = Path(__file__).resolve().parent / "results" / "paper"
DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURE = re.compile(r"\]\(([\w-]+)/([\w=.-]+\.png)\)")


def publish(out: Path = KEPT, docs: Path = DOCS) -> Path:
    """Write paper.md and its pictures; those that the page no longer shows are removed.

    Pictures are not kept beside the runs. One that was not drawn again since stays as it is.
    """
    text = page.write(out)[0].read_text()
    shown = {f"paper-{name}": out / folder / name for folder, name in PICTURE.findall(text)}
    for old in (docs / "images").glob("paper-*.png"):
        if old.name not in shown:
            old.unlink()
    for name, drawn in shown.items():
        if drawn.is_file():
            shutil.copyfile(drawn, docs / "images" / name)
    target = docs / page.NAME
    target.write_text(PICTURE.sub(r"](images/paper-\2)", text))
    return target


if __name__ == "__main__":
    print(publish(*map(Path, sys.argv[1:])))
