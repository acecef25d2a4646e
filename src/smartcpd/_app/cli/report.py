"""``smartcpd report``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from smartcpd._app.cli.console import say, stdout
from smartcpd._app.cli.options import RunPath
from smartcpd._app.run_folder import RunFolder

EXAMPLES = "Example: smartcpd report chicago_crime_2022-smartcpd --open"


def report(
    folder: RunPath,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write the page of a run again and print its path."""
    place = RunFolder(folder)
    page = place.write_report(place.load())
    if open_it and typer.launch(page.absolute().as_uri()) != 0:
        say("No browser could be started; open the page yourself.")
    stdout().print(Text(str(page)))
