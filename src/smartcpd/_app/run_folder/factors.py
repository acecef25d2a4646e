"""Factors as CSV files, one a mode, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from smartcpd._common.atomic import replace_file
from smartcpd._common.spreadsheets import inert
from smartcpd._fitting.model import CPModel

LONGEST = 120
"""Bytes of a name of a file; with what is added to it, file systems allow 255 or fewer."""


def write_factors(folder: Path, model: CPModel) -> list[Path]:
    """Write <folder>/<mode>.csv for every mode: a label and its entry in each component."""
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.csv"):
        stale.unlink()
    paths = []
    for name, mode, A in zip(
        file_names([m.name for m in model.named_modes]),
        model.named_modes,
        model.factors,
        strict=True,
    ):
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow([inert(mode.name), *(f"component {r}" for r in range(1, model.rank + 1))])
        for label, row in zip(mode.text(), A.tolist(), strict=True):
            out.writerow([inert(label), *row])
        paths.append(folder / f"{name}.csv")
        replace_file(paths[-1], text.getvalue().encode(errors="replace"))
    return paths


def file_names(names: list[str]) -> list[str]:
    """Names of modes as names of files: no separators, no two alike, none empty."""
    found: list[str] = []
    taken: set[str] = set()
    for n, name in enumerate(names):
        safe = _shortened(re.sub(r"[^\w .@-]+", "_", name)).strip(" .") or f"mode {n}"
        while safe.lower() in taken:
            safe += "_"
        taken.add(safe.lower())
        found.append(safe)
    return found


def _shortened(name: str) -> str:
    """The beginning of a name: file systems count bytes, and most letters take two or three."""
    return name[:80].encode(errors="replace")[:LONGEST].decode(errors="ignore")
