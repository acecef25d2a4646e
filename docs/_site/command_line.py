"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from itertools import groupby

import typer
from typer.main import get_command

from smartcpd._app.cli.app import COMMANDS, app, command_of

HEAD = """# Command line

This page is made from the program itself: `smartcpd COMMAND --help` says the same in a terminal.

"""


def command_line_page() -> str:
    """Markdown with a section a command: what it does, how to call it, its options, examples."""
    program = get_command(app)
    context = typer.Context(program, info_name="smartcpd")
    commands = {name: command_of(name) for name in COMMANDS}
    table = ["| command | what it does |", "|---|---|"]
    table += [
        f"| [`smartcpd {name}`](#smartcpd-{name}) | {_sentence(command.help)} |"
        for name, command in commands.items()
    ]
    sections = [_section(name, command, context) for name, command in commands.items()]
    return HEAD + "\n".join(table) + f"\n\n{_plain(app.info.epilog)}\n\n" + "\n".join(sections)


def _section(name, command, parent) -> str:
    context = typer.Context(command, info_name=name, parent=parent)
    params = command.get_params(context)
    arguments = [p for p in params if p.param_type_name == "argument"]
    options = [p for p in params if p.param_type_name == "option"]
    parts = [f"## smartcpd {name}\n", _paragraphs(command.help)]
    usage = " ".join(["smartcpd", name, "[OPTIONS]", *map(_metavar, arguments)])
    parts.append(f"```text\n{usage}\n```\n")
    parts += [_table("argument", arguments)] if arguments else []
    by_panel = groupby(sorted(options, key=_panel_order(options)), key=_panel)
    for panel, group in by_panel:
        parts.append(f"**{panel}**\n\n{_table('option', list(group))}")
    if command.epilog:
        parts.append(f"**Examples**\n\n{_examples(command.epilog)}")
    return "\n".join(parts)


def _panel(param) -> str:
    return getattr(param, "rich_help_panel", None) or "Options"


def _panel_order(options):
    order = list(dict.fromkeys(map(_panel, options)))
    return lambda option: order.index(_panel(option))


def _table(kind, params) -> str:
    rows = [f"| {kind} | meaning |", "|---|---|"]
    for param in params:
        names = "`" + "`, `".join([*param.opts, *param.secondary_opts]) + "`"
        if kind == "argument":
            names = f"`{_metavar(param)}`"
        elif not getattr(param, "is_flag", False):
            names += f" `{_metavar(param)}`"
        rows.append(f"| {names} | {_cell(param.help)}{_default(param)} |")
    return "\n".join(rows) + "\n"


def _metavar(param) -> str:
    return param.metavar or param.name.upper()


def _default(param) -> str:
    default = param.default
    if default is None or callable(default) or isinstance(default, bool) or default in ("", ()):
        return ""
    return f" Default: `{default}`."


def _examples(text: str) -> str:
    lines = re.sub(r"^Examples?:\s*", "", _plain(text).strip()).splitlines()
    return "```text\n" + "\n".join(line for line in lines if line) + "\n```\n"


def _sentence(text: str | None) -> str:
    return _cell((text or "").strip().split("\n\n")[0])


def _paragraphs(text: str | None) -> str:
    return _plain(text or "").strip() + "\n"


def _cell(text: str | None) -> str:
    return " ".join(_plain(text or "").split()).replace("|", "\\|").replace("*", "\\*")


def _plain(text: str) -> str:
    """Leave out the marks that typer takes for colours and the like."""
    return re.sub(r"\[/?(?:bold|dim|cyan|green|red|yellow|italic)\b[^\]]*\]", "", text)
