"""Pages that are made from the program and its measurements whenever the site is built."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from command_line import command_line_page
from pictures import draw_components
from piece_pages import KINDS, piece_page

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS_HEAD = """# Benchmarks

Every table below is made from the records of the measurements, which are kept with the code in
`benchmarks/results`.
"""


def write_all(app) -> None:
    """Write the generated pages into the folder `generated` of the site's sources."""
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    _write(folder / "command-line.md", command_line_page())
    _write(folder / "benchmarks.md", benchmarks_page())
    _write(folder / "changelog.md", changelog_page())
    for kind in KINDS:
        _write(folder / f"{kind}.md", piece_page(kind))
    shutil.copytree(ROOT / "benchmarks" / "images", folder / "images", dirs_exist_ok=True)
    picture, start_page = folder / "images" / "components.png", Path(app.srcdir) / "index.md"
    if not picture.exists():
        draw_components(start_page, picture)


def benchmarks_page() -> str:
    """The report of the benchmarks, with figures of its own on top of the site's words."""
    report = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    return BENCHMARKS_HEAD + report.split("\n", 1)[1]


def changelog_page() -> str:
    """The changelog; links to files outside the site become plain words."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!http)[^)]*\)", r"`\1`", text)


def _write(path: Path, text: str) -> None:
    """Leave a page that has not changed alone, so that only changed pages are read again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
