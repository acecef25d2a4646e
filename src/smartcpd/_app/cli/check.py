"""``smartcpd check``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from smartcpd._app.cli.console import print_json, printable, stdout
from smartcpd._app.cli.options import Json, in_flags
from smartcpd._app.cli.table_options import ReadingOptions
from smartcpd._data.files import is_tensor_file
from smartcpd._inference.wording import counted

MOST_SHOWN = 40
"""Number of columns of a table that are listed on a terminal."""

EXAMPLES = """\
Examples:

smartcpd check events.csv.gz

smartcpd check counts.tns --rank 20

smartcpd check sales.csv --decimal , --date-format day-first
"""


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A tensor or a table.")],
    reading: ReadingOptions,
    rank: Annotated[
        int, typer.Option("--rank", "-r", min=1, metavar="N", help="For the memory needed.")
    ] = 10,
    json: Json = False,
) -> None:
    """Say what a file holds, which losses can describe it, and how to fit it."""
    from smartcpd._app import inspection as checks

    is_tensor = is_tensor_file(file)
    if is_tensor:
        found = checks.check_tensor(file, rank)
    else:
        found = checks.check_table(file, reading.parameters(), reading.words())
        found["advice"] = [in_flags(sentence) for sentence in found["advice"]]
    if json:
        print_json(found)
        return
    console = stdout()
    (_print_tensor if is_tensor else _print_table)(console, found)
    console.print()
    for sentence in found["advice"]:
        console.print(Text(f"- {printable(sentence)}"))


def _print_tensor(console: Console, found: dict[str, Any]) -> None:
    shape = " x ".join(f"{size:,}" for size in found["shape"])
    console.print(Text(f"{shape}, {found['kind']}, {found['dtype']}", style="bold"))
    lines = [
        f"{found['cells']:,} cells, {found['nonzeros']:,} nonzeros ({found['density']:.3g} %), "
        f"values from {found['lowest']:g} to {found['highest']:g}",
        *_duplicates(found),
        f"memory: {_size(found['bytes'])} for the data, {_size(found['factor_bytes'])} for the "
        f"factors of rank {found['rank']}",
    ]
    for line in lines:
        console.print(Text(line))
    console.print()
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, problem in found["losses"].items():
        mark = Text("no", style="red") if problem else Text("yes", style="green")
        table.add_row(Text(name), mark, Text(printable(problem or "")))
    console.print(table)


def _duplicates(found: dict[str, Any]) -> list[str]:
    """Say how often cells are named twice, where they are named."""
    if found["duplicates"]:
        return [f"{found['duplicates']:,} duplicate entries, which are added up"]
    return ["no duplicate entries"] if found["kind"] == "sparse" else []


def _print_table(console: Console, found: dict[str, Any]) -> None:
    console.print(Text(f"A table of {counted(found['rows'], 'row')}{_layout(found)}", style="bold"))
    exact = all(column["exact"] for column in found["columns"])
    table = Table(box=None, pad_edge=False)
    different = "different" if exact else "different (about)"
    for heading in ("column", "holds", different, "missing", "range or examples", "as a mode"):
        numeric = heading.startswith(("different", "missing"))
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for column in found["columns"][:MOST_SHOWN]:
        shown = f"{column['lowest']} to {column['highest']}"
        if column["lowest"] is None:
            shown = ", ".join(column["examples"])
        table.add_row(
            Text(printable(column["name"])),
            Text(
                printable(column["holds"] + (f", {column['format']}" if column["format"] else ""))
            ),
            f"{column['different']:,}",
            f"{column['missing']:,}",
            Text(printable(shown)),
            column["advice"],
        )
    console.print(table)
    more = len(found["columns"]) - MOST_SHOWN
    if more > 0:
        console.print(Text(f"... and {counted(more, 'more column')}, which --json lists"))
    if found["tried"]:
        shape = " x ".join(f"{size:,}" for size in found["tried"]["shape"])
        console.print()
        console.print(
            Text(
                f"Tried below: {shape}, {found['tried']['nonzeros']:,} cells with something in "
                f"them, {found['tried']['total']:,.12g} in all"
            )
        )


def _layout(found: dict[str, Any]) -> str:
    layout = found.get("layout")
    if not layout:
        return ""
    names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
    if "kind" in layout:
        parts = [layout["kind"]]
    else:
        sign = layout["delimiter"]
        parts = [layout["encoding"].upper(), f"columns parted by {names.get(sign, repr(sign))}"]
    parts.append("names in the first line" if layout["header"] else "no names")
    return f" ({', '.join(parts)})"


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            break
        n_bytes /= 1000
    return f"{n_bytes:,.0f} {unit}" if unit == "bytes" else f"{n_bytes:,.3g} {unit}"
