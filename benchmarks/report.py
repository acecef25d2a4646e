"""RESULTS.md: every kept record as tables and figures, with a table of all verdicts in front."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import draw
from benchmarks.results import (
    Bars,
    Json,
    Lines,
    Method,
    Record,
    Remark,
    Row,
    Verdict,
    described,
    is_held,
    shown,
)
from benchmarks.runner import stored

HEAD = """# Benchmarks

Written by `make bench` (or `python -m benchmarks CASE`) from `results/*.json`. Where measurements
were repeated, a figure is the median, and the range of all of them follows in brackets; compared
runs alternate, so that a noisy moment hits all of them. Ratios are those of paired runs. A case
shows the code of the day that stands below it: later changes may have made fits better, faster or
slower, and a figure says nothing about them.
"""


QUICK = """
This is the quick form: a seed or two and short limits, for peers as well, so that some verdicts
mean little. The figures to cite are those of `make bench`.
"""


def write_report(folder: Path, quick: bool = False) -> Path:
    """Set RESULTS.md, and the figures it shows, from the records of a folder."""
    records = stored(folder)
    images = folder / "images"
    parts = [HEAD + QUICK if quick else HEAD, *_summary(records)]
    for record in records:
        parts.extend(_section(record, images))
    path = folder / "RESULTS.md"
    path.write_text("\n".join(parts).rstrip() + "\n")
    return path


def _summary(records: list[Record]) -> list[str]:
    rows = [
        [f"[{record.case}](#{record.case})", *_judged(verdict)]
        for record in records
        for verdict in record.of_kind(Verdict)
    ]
    if not rows:
        return []
    held = sum(row[-1] == "holds" for row in rows)
    return [
        f"{held} of {len(rows)} hold.\n",
        *_table(["case", "what", "measured", "wanted", ""], rows),
    ]


def _judged(verdict: Json) -> list[str]:
    wanted = f"{'at most' if verdict['at_most'] else 'at least'} {verdict['bound']:g}"
    state = "holds" if is_held(verdict) else "**fails**"
    return [verdict["label"], shown(verdict["value"]), wanted, state]


def _section(record: Record, images: Path) -> list[str]:
    parts = [f"## {record.case}\n", f"{record.title}\n"]
    if record.about:
        parts.append(f"{record.about}\n")
    methods = [[f"{m['package']} {m['version']}", described(m)] for m in record.of_kind(Method)]
    if methods:
        parts.extend(_table(["measured", "settings"], methods))
    for name in dict.fromkeys(row["table"] for row in record.of_kind(Row)):
        rows = [row["cells"] for row in record.of_kind(Row) if row["table"] == name]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        parts.append(f"**{name}**\n")
        parts.extend(_table(columns, [[shown(row.get(c)) for c in columns] for row in rows]))
    for figure in (*record.of_kind(Bars), *record.of_kind(Lines)):
        path = draw(figure, images / f"{record.case}_{figure['name']}.svg")
        parts.append(f"![{figure['title']}]({path.parent.name}/{path.name})\n")
    verdicts = [_judged(v) for v in record.of_kind(Verdict)]
    if verdicts:
        parts.extend(_table(["what", "measured", "wanted", ""], verdicts))
    parts.extend(f"{remark['text'].strip()}\n" for remark in record.of_kind(Remark))
    parts.append(f"*{record.date}, {record.machine}*\n")
    return parts


def _table(columns: list[str], rows: list[list[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    text = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
    return ["\n".join(text) + "\n"]
