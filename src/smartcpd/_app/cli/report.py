"""``smartcpd report``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from smartcpd._app.cli.console import say, stdout
from smartcpd._app.cli.given_names import GivenNames
from smartcpd._app.cli.options import RunPath
from smartcpd._app.run_folder import RunFolder

EXAMPLES = """\
Examples:

smartcpd report chicago_crime_2022-smartcpd --open

smartcpd report chicago_crime_2022-smartcpd --name 1=commuters --name 3=nights
"""


def report(
    folder: RunPath,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NUMBER=NAME",
            help="A name for a component, by its number (1=commuters); it is kept with the run.",
        ),
    ] = None,
) -> None:
    """Write the page of a run again and print its path."""
    place, names = RunFolder(folder), GivenNames.read(name)
    if names.modes:
        raise typer.BadParameter(
            f"{next(iter(names.modes))!r} is not the number of a component; modes are named when "
            "they are fitted, by 'smartcpd fit ... --name'",
            param_hint="--name",
        )
    run = place.load()
    if names.components:
        names.check_rank(run.model.rank)
        run = place.renamed(run, names.components)
    page = place.write_report(run)
    if open_it and typer.launch(page.absolute().as_uri()) != 0:
        say("No browser could be started; open the page yourself.")
    stdout().print(Text(str(page)))
