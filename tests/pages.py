"""The code that pages of Markdown show: what it is, and what it must print."""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCED = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$",
    re.M | re.S,
)
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN = ("python", "pycon", "console")
"""Languages of blocks that are run; others are text to read."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page that is code."""

    language: str
    code: str
    line: int
    reason: str | None
    """Why it is not run, as the page says to its writers."""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["language"], found["code"], text[: found.start()].count("\n") + 1, found["reason"]
        )
        for found in FENCED.finditer(text)
        if found["language"] in RUN
    ]


def pages() -> list[Path]:
    """Every page that people write, with code in it."""
    written = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    made = ("generated", "gallery", "_build")
    return [p for p in written if not any(part in made for part in p.parts) and blocks(p)]


def run_python(block: Block, names: dict, page: Path) -> None:
    lines = "\n" * block.line + block.code
    exec(compile(lines, str(page), "exec"), names)


def run_session(block: Block, names: dict, page: Path) -> list[str]:
    """Run a session with the interpreter; return what differs from what the page shows."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line)
    runner = doctest.DocTestRunner(optionflags=LOOSELY)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    return said if runner.failures else []


def commands(block: Block) -> list[tuple[list[str], str]]:
    """Return the commands of a session in a shell, each with the output that is shown."""
    parts = re.split(r"^\$ ", block.code, flags=re.M)[1:]
    return [
        (shlex.split(first), shown) for first, _, shown in (part.partition("\n") for part in parts)
    ]


def looks_like(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(shown, printed, LOOSELY)
