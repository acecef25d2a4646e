"""``smartcpd compare``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from smartcpd._app.cli.console import print_json, printable, say, stdout
from smartcpd._app.cli.options import Json
from smartcpd._app.run_folder import RunFolder
from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._data.labels import Mode
from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError

LONGER = 1.5
"""How many times as long as others periods are that are none of theirs; months differ by less."""
EXAMPLES = "Example: smartcpd compare seed0 seed1"


@dataclass(frozen=True)
class Pair:
    """Two components that match, counted from 1."""

    first: int
    second: int
    similarity: float
    by_mode: list[float]
    shares: tuple[float, float]


def compare(
    first: Annotated[Path, typer.Argument(metavar="DIR1", help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="DIR2", help="Folder of another run.")],
    json: Json = False,
) -> None:
    """Match the components of two runs and say how alike they are.

    The similarity of two components is the product over the modes of the cosines of their columns,
    1 if they are the same. The score is its mean over the matched components.
    """
    one, other = (RunFolder(path).load().shown for path in (first, second))
    models, left_out = on_common_rows(one.model, other.model)
    cosines = np.abs(mode_cosines(*(model.factors for model in models)))
    similarity = np.minimum(cosines.prod(axis=0), 1.0)
    found = sorted(
        (
            Pair(
                int(i) + 1,
                int(j) + 1,
                float(similarity[i, j]),
                [float(c) for c in np.minimum(cosines[:, i, j], 1.0)],
                (float(one.shares[i]), float(other.shares[j])),
            )
            for i, j in zip(*best_pairs(similarity), strict=True)
        ),
        key=lambda pair: pair.first,
    )
    score = float(np.mean([pair.similarity for pair in found]))
    ranks = one.model.rank, other.model.rank
    if ranks[0] != ranks[1]:
        which = "first" if ranks[0] > ranks[1] else "second"
        left_out.append(
            f"{abs(ranks[0] - ranks[1]):,} of the {max(ranks):,} components of the {which} run "
            "have no counterpart."
        )
    for sentence in left_out:
        say(sentence)
    names = [mode.name for mode in one.model.named_modes]
    if json:
        print_json({"score": score, "modes": names, "pairs": [vars(pair) for pair in found]})
        return
    console = stdout()
    console.print(_table(names, found))
    console.print(Text(f"Score: {score:.4f} (1 if all components are the same)"))


def on_common_rows(one: CPModel, other: CPModel) -> tuple[tuple[CPModel, CPModel], list[str]]:
    """Return both models on the rows that both have, in one order, and what was left out of
    which.
    """
    names = [[mode.name for mode in model.named_modes] for model in (one, other)]
    if names[0] != names[1]:
        raise IncompatibleError(
            f"Only runs with the same modes can be compared; got {', '.join(names[0])} and "
            f"{', '.join(names[1])}."
        )
    rows, sentences = [], []
    for a, b in zip(one.named_modes, other.named_modes, strict=True):
        _refuse_other_bins(a, b)
        at = {label: row for row, label in enumerate(b.text())}
        common = [(row, at[label]) for row, label in enumerate(a.text()) if label in at]
        if not common:
            raise IncompatibleError(f"The runs have no label of mode {a.name!r} in common.")
        if len(common) < max(len(a), len(b)):
            sentences.append(
                f"Mode {a.name!r}: {len(common):,} labels are in both runs, of {len(a):,} and "
                f"{len(b):,}; the others are left out."
            )
        rows.append(common)
    taken = tuple(
        _rows_of(model, [[pair[side] for pair in common] for common in rows])
        for side, model in enumerate((one, other))
    )
    return (taken[0], taken[1]), sentences


def _refuse_other_bins(a: Mode, b: Mode) -> None:
    """Raise an error if one run has days where the other has weeks: Mondays are in both."""
    if a.labels.dtype.kind != "M" or b.labels.dtype.kind != "M" or min(len(a), len(b)) < 2:
        return
    days = [float(np.median(np.diff(m.labels) / np.timedelta64(1, "D"))) for m in (a, b)]
    if max(days) > LONGER * min(days):
        raise IncompatibleError(
            f"Mode {a.name!r} is in steps of {days[0]:.3g} days in the first run and of "
            f"{days[1]:.3g} in the second; fit both with the same --bin."
        )


def _rows_of(model: CPModel, rows: list[list[int]]) -> CPModel:
    pairs = zip(model.named_modes, rows, strict=True)
    modes = tuple(Mode(m.name, m.labels[at], m.kind) for m, at in pairs)
    factors: Any = [A[at] for A, at in zip(model.factors, rows, strict=True)]
    return replace(model, factors=factors, modes=modes)


def _table(names: list[str], found: list[Pair]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("first", "share", "second", "share", "similarity", *map(printable, names)):
        table.add_column(Text(heading), justify="right")
    for pair in found:
        table.add_row(
            str(pair.first),
            f"{pair.shares[0]:.1%}",
            str(pair.second),
            f"{pair.shares[1]:.1%}",
            f"{pair.similarity:.3f}",
            *(f"{cosine:.3f}" for cosine in pair.by_mode),
        )
    return table
