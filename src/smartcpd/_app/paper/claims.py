"""The claims of the paper, next to what our runs of the experiments show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from smartcpd._app.paper import findings
from smartcpd._app.paper.findings import GCP, GGN, SMART
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table
from smartcpd.errors import InvalidDataError


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that figures can support or not.

    Attributes
    ----------
    text : str
        What is claimed.
    paper : str
        The paper's figure for it.
    experiment : str
        The experiment whose runs decide.
    judge : callable
        The finding, or None where runs that it needs are missing.
    why : str
        What explains the outcome.
    """

    text: str
    paper: str
    experiment: str
    judge: findings.Judge
    why: str


CLAIMS = (
    Claim(
        "SmartCPD ends below an MSE of 0.01 on counts at R = 10, 20 and 50",
        "2.7e-3, 3.7e-3, 6.6e-3",
        "count",
        findings.low_errors,
        "The same method on the same kind of data. At R = 50 a single start sometimes ends with a "
        "component missing, which the median does not show (7e-3); our defaults begin with more "
        "components than wanted.",
    ),
    Claim(
        "GCP-OPT and GGN do not get below an MSE of 0.1 on counts at R = 50",
        "0.406, 0.281 (medians after 100 s)",
        "count",
        findings.rivals_at_high_rank,
        "Our rivals are compiled and their rate is searched for; where they get further than the "
        "paper's, this is why.",
    ),
    Claim(
        "SmartCPD is 4 times as fast as GCP-OPT to an MSE of 0.01 on counts",
        "less than 10 s against about 40 s",
        "count",
        findings.ratio_to_error("R=20", SMART, GCP, 1e-2, 4.0),
        "GCP-OPT runs here with the best of four rates; with its default of 1e-3, as in the "
        "paper's toolbox, it is several times slower.",
    ),
    Claim(
        "SmartCPD needs the fewest samples on counts",
        "an order of magnitude in many trials",
        "count",
        findings.fewer_samples,
        "As above: a better rate saves GCP-OPT samples, too.",
    ),
    Claim(
        "SmartCPD needs much less time than GCP-OPT to an MSE of 0.01 on binary data (15 % ones)",
        "a figure",
        "binary",
        findings.ratio_to_error("A_max=0.3", SMART, GCP, 0.067, 1.5),
        "0.01 is below the limit of the data (the fit from the truth, about 0.025), so nobody gets "
        "there. The authors' code divides by the rank once more, and may have done so here: 0.067 "
        "of ours is 0.01 on its scale.",
    ),
    Claim(
        "Mixed steps beat Jensen and adagrad steps alone on gamma data",
        "a figure",
        "continuous",
        findings.mixed_is_best,
        "On 300x300x300 none of them has settled after 10 s. Adagrad, with a constant b on the "
        "scale of the first gradients, is ahead by itself.",
    ),
    Claim(
        "Both stochastic methods are faster than GGN on gamma data",
        "a figure",
        "continuous",
        findings.ratio_to_error("gamma", "SmartCPD, mixed", GGN, 1e-2, 1.0),
        "GGN reads all entries for each of its many products.",
    ),
    Claim(
        "SmartCPD converges much faster than block mirror descent on the simplex",
        "a figure",
        "simplex",
        findings.ratio_to_error("simplex", SMART, "block MD", 1e-2, 1.5),
        "Our block mirror descent searches for the longest safe step, which the paper's may not.",
    ),
    Claim(
        "Steps for each entry (adagrad) beat a constant step on continuous data",
        "a figure",
        "steps",
        findings.ratio_to_error("continuous", "adagrad, a log a", "constant, a log a", 1e-3, 1.0),
        "The constant step is tuned to the first gradients only; in the end it can be as good.",
    ),
    Claim(
        "... and on counts",
        "a figure",
        "steps",
        findings.ratio_to_error("count", "adagrad, a log a", "constant, a log a", 1e-2, 1.0),
        "As above.",
    ),
    Claim(
        "Jensen steps are weak on data with many zeros",
        "a remark",
        "steps",
        findings.better_steps("many zeros", "adagrad, a log a", "Jensen, -log a"),
        "A batch may hold no event for a row, and its entry then falls to the floor.",
    ),
    Claim(
        "SmartCPD reaches a lower cost than GCP-OPT and GGN on Chicago crime",
        "0.043 after 35.81 s; about 5 s to a low cost",
        "chicago",
        findings.lower_cost,
        "From the paper's start U(0, 1) all begin far too high. SmartCPD is ahead for seconds, but "
        "GCP-OPT, which samples the events apart, ends level with it; GGN falls into a poor place.",
    ),
    Claim(
        "SmartCPD ends at a lower cost than GCP-OPT and GGN on pollinators",
        "a figure",
        "pollinators",
        findings.lower_cost,
        "As above; of a tensor this empty, uniform fibers hold next to nothing but zeros.",
    ),
    Claim(
        "SmartCPD is about 15 times as fast as GCP-OPT on pollinators",
        "15x",
        "pollinators",
        findings.ratio_on_real(GCP, 15.0),
        "As above; the paper's GCP-OPT reads 40 x 562 entries an iteration, ours what suits it.",
    ),
    Claim(
        "... and as GGN",
        "15x",
        "pollinators",
        findings.ratio_on_real(GGN, 15.0),
        "From U(0, 1) our GGN falls into a poor place at once.",
    ),
    Claim(
        "SmartCPD is at least 40 times as fast as GCP-OPT on UCI chat",
        "40x",
        "uci",
        findings.ratio_on_real(GCP, 40.0),
        "Our GCP-OPT samples nonzeros and zeros apart, and so sees the events; uniform fibers, as "
        "in the paper, seldom do. Our default reads the events alone.",
    ),
)


def collected(out: Path) -> Table:
    """Return every claim with its finding; quick runs only where there are no others, and
    marked.
    """
    rows = []
    seen = {name: _runs_of(name, out) for name in {claim.experiment for claim in CLAIMS}}
    for claim in CLAIMS:
        runs, marks = seen[claim.experiment]
        finding = claim.judge(runs) if len(runs) else None
        if finding is None:
            ours, verdict = "not run yet", "-"
        else:
            agrees = "agrees" if finding.agrees else "does not agree"
            ours, verdict = finding.ours + marks, agrees + marks
        rows.append([claim.text, claim.paper, ours, verdict, claim.why, claim.experiment])
    if not any(len(runs) for runs, _ in seen.values()):
        raise InvalidDataError(
            f"{out} holds no runs of any experiment; run one first, such as `smartcpd paper "
            "count`, or name their folder with --out."
        )
    header = ["claim of the paper", "paper", "ours", "verdict", "why", "experiment"]
    note = (
        "Computed from the raw runs (runs.csv) of each experiment. SmartCPD is the paper's "
        "Algorithm 1 alone; medians over trials. Seconds are ours on one machine, the paper's are "
        "MATLAB's on another: only ratios can be compared."
    )
    return Table("claims", "The paper's claims and our runs", header, rows, note)


def _runs_of(experiment: str, out: Path) -> tuple[Runs, str]:
    """Return the runs of an experiment, and what readers of them must be told."""
    folder, marks = out / experiment, []
    if not (folder / "runs.csv").is_file():
        folder, marks = out / f"{experiment}-quick", ["quick run"]
    runs = Runs(folder)
    if "SIMULATED" in str(runs.settings().get("data", "")):
        marks.append("SIMULATED data")
    return runs, f" [{', '.join(marks)}]" if marks else ""


def write(out: Path) -> Path:
    """Write claims.md and claims.csv into the folder of the experiments."""
    table = collected(out)
    path = out / "claims.md"
    path.write_text(table.markdown())
    (out / "claims.csv").write_text(table.csv())
    return path
