"""The page of all experiments, for a reader of the paper: claims, verdicts, then the figures."""

from __future__ import annotations

from pathlib import Path

from smartcpd._app.paper import claims
from smartcpd._app.paper.experiments import EXPERIMENTS
from smartcpd._app.paper.runner import SECTION
from smartcpd._app.paper.tables import Table

NAME = "paper.md"
INTRODUCTION = """# The paper's experiments, run again

Pu, Ibrahim, Fu and Hong, *Stochastic Mirror Descent for Low-Rank Tensor Decomposition Under
Non-Euclidean Losses*, 2022. Every claim of the paper that figures can support or not, in the order
of its text, with two verdicts.

**As the paper set it up**: all solvers *as published*, from the same start A_max U(0, 1). SmartCPD
is Algorithm 1 alone, with eta = 1 and b = 1e-5, no averaging, no merging, and its last factors
count. GCP-OPT is Adam with the toolbox's rate of 1e-3, as many entries an iteration, epochs of 1000
iterations. GGN is our generalised Gauss-Newton. b differs in one place: with columns on the simplex
gradients are so small that nothing moves with 1e-5, and it is set by the size of the first
gradients. On real data all stop where a look changes the loss by less than a thousandth.

**Against tuned rivals**: SmartCPD with this package's defaults, GCP-OPT with a searched rate, all
from starts on the scale of the data. `auto`, the package's default, is in the figures but decides
no claim, as it is another method.

"Much" is twice, "many" a quarter of the trials, "consistently" nine tenths. Seconds are the
processor's, of compiled code on one thread; the paper's are MATLAB's on another machine, so that
only ratios compare, and budgets are in entries, too: an epoch is as many as the tensor has.
`smartcpd paper NAME` repeats an experiment and goes on with its trials, `smartcpd paper claims`
makes this page; raw runs are in `runs.csv.gz`, those behind this page in
`benchmarks/results/paper`.
"""
HOW_TO_READ = """\
Brackets say how many trials a figure rests on. Where these are fewer than the 20 of simulated and
the 10 of real data, the verdict is provisional, and running the experiment again completes it.
They also say where the runs behind a figure, made before such were kept, are not there any more.
Reasons are marked as *measured* or as *conjecture*."""


def write(out: Path) -> list[Path]:
    """Write the page, and the claims as a table, into the folder of the experiments."""
    table = claims.collected(out)
    path = out / NAME
    path.write_text("\n".join([INTRODUCTION, *_claims(table), *_sections(out)]))
    as_csv = out / claims.FILE
    as_csv.write_text(table.csv())
    return [path, as_csv]


def _claims(table: Table) -> list[str]:
    """Return the claims with their verdicts, and then the figures behind these."""
    verdicts = Table(
        "",
        "",
        ["", *table.header[:4], "experiment"],
        [[str(n), *row[:4], f"[{row[-1]}](#{row[-1]})"] for n, row in enumerate(table.rows, 1)],
    )
    figures = Table(
        "",
        "",
        ["", *table.header[4:7]],
        [[str(n), *row[4:7]] for n, row in enumerate(table.rows, 1)],
        table.note,
    )
    return [
        "## Its claims\n",
        verdicts.rows_markdown(),
        "## The figures behind the verdicts\n",
        HOW_TO_READ + "\n",
        figures.rows_markdown(),
    ]


def _sections(out: Path) -> list[str]:
    """Return the sections of the experiments that have run; pictures are in their folders."""
    found = []
    for name in EXPERIMENTS:
        folder = out / name if (out / name / SECTION).is_file() else out / f"{name}-quick"
        if (folder / SECTION).is_file():
            text = (folder / SECTION).read_text()
            found.append(text.replace("](", f"]({folder.name}/"))
    return found
