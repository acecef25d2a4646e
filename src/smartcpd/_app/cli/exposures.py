"""The exposure of a table: a column that is added up in every cell, or that belongs to a mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer

from smartcpd._app.cli.table_options import TableOptions, option
from smartcpd._data.exposure import Exposure
from smartcpd._data.files import is_tensor_file
from smartcpd.errors import InvalidParameterError

ABSENT = "Cells without a row"
"""How the note begins that says what cells without rows are."""
SAME = 1e-9
"""The relative difference up to which two numbers of a column count as one."""


@dataclass(frozen=True)
class ExposureOptions:
    """The options that say how much opportunity there was."""

    exposure: Annotated[
        str | None,
        option(
            "--exposure",
            metavar="COLUMN",
            help="Column of a table that says how much opportunity a row had, such as minutes; it "
            "is added up in every cell, and the model is of rates. Cells without rows were not "
            "observed.",
        ),
    ] = None
    per: Annotated[
        str | None,
        option(
            "--per",
            metavar="COLUMN",
            help="Column that has one number for each label of a mode, such as the population of a "
            "city; the model is of rates per that.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.exposure and self.per:
            raise typer.BadParameter(
                "--exposure is added up in every cell, and --per belongs to the labels of a mode; "
                "give one."
            )

    @property
    def column(self) -> str | None:
        """The column, whichever option named it."""
        return self.exposure or self.per

    def words(self) -> list[str]:
        """The options that the user gave, as words of a command line."""
        given = (("--exposure", self.exposure), ("--per", self.per))
        return [word for flag, value in given if value for word in (flag, value)]

    def chosen(self) -> dict[str, str]:
        """The options that the user gave."""
        given = {"exposure": self.exposure, "per": self.per}
        return {name: value for name, value in given.items() if value}

    def found(self, file: str, table: TableOptions, X: Any) -> Exposure | None:
        """Read the exposure of the tensor X that the table made; None if nobody asked for one."""
        if self.column is None:
            return None
        if is_tensor_file(file):
            raise InvalidParameterError(
                f"{self.words()[0]} names a column, and {file} is a tensor already. Use "
                "SmartCPD.fit(X, exposure=...) in Python."
            )
        E = _column(file, table, self.column, "sum" if self.exposure else "mean")
        for own, other in zip(X.modes, E.modes, strict=True):
            if not np.array_equal(own.labels, other.labels):
                raise InvalidParameterError(
                    f"Column {self.column!r} has no number for some labels of {own.name!r}. Fill "
                    "it in, or leave those rows out with --where."
                )
        if self.exposure:
            return Exposure(cells=E.tensor, per=f"unit of {self.exposure}")
        return _of_mode(E, self.column)


def _column(file: str, table: TableOptions, column: str, agg: str) -> Any:
    """The tensor of a column, made of the table as that of the data is."""
    from smartcpd._data.tables import from_table

    asked = table.parameters() | {"value": column, "agg": agg, "absent": "missing"}
    return from_table(file, **asked)


def _of_mode(E: Any, column: str) -> Exposure:
    """The numbers of a column by the labels of the mode that it belongs to."""
    values, clash = E.tensor.values.astype(np.float64), ""
    for n, mode in enumerate(E.modes):
        places = E.tensor.indices[n]
        low, high = np.full(len(mode), np.inf), np.full(len(mode), -np.inf)
        np.minimum.at(low, places, values)
        np.maximum.at(high, places, values)
        apart = np.flatnonzero(high - low > SAME * np.abs(high))
        if apart.size == 0 and np.isfinite(low).all():
            vectors = [None] * len(E.modes)
            return Exposure(tuple(low if k == n else v for k, v in enumerate(vectors)), per=column)
        row = int(apart[0]) if apart.size else 0
        clash = clash or f"{mode.name} {mode.text()[row]} has {low[row]:g} and {high[row]:g}"
    raise InvalidParameterError(
        f"--per {column} needs a column with one number for each label of a mode; {clash}. Use "
        f"--exposure {column} to add it up in every cell."
    )


def said_of(X: Any, exposure: Exposure | None) -> Any:
    """The same data with a note about its exposure."""
    if exposure is None:
        return X
    notes = [note for note in X.notes if exposure.is_product or not note.startswith(ABSENT)]
    if not exposure.is_product:
        notes.append("Cells without a row had no exposure, and count as missing.")
    return replace(X, notes=(*notes, f"Loadings and model values are {exposure.words}."))


def as_selected(X: Any, exposure: Exposure | None, loss: Any) -> Any:
    """The data by which a rank is chosen: rates, where cells have an exposure each; one of modes
    makes no difference.
    """
    if exposure is None or exposure.is_product:
        return X
    from smartcpd._data.rates import rates

    return rates(X, exposure, loss)
