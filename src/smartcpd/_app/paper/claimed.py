"""The list of what the paper claims, in the order of its text."""

from __future__ import annotations

from smartcpd._app.paper import findings as f
from smartcpd._app.paper import findings_real as real
from smartcpd._app.paper import findings_steps as rules
from smartcpd._app.paper.claim import Claim
from smartcpd._app.paper.experiments import binary, steps
from smartcpd._app.paper.findings import GCP, GGN, MD, SMART

FIGURE, REMARK = "a figure", "a remark"

CLAIMS = (
    Claim(
        "Maps that fit the loss allow much longer steps than ½a²",
        "contours",
        "contours",
        rules.longer_steps,
    ),
    Claim(
        "Steps of its own for each entry (adagrad) are much faster than a constant step on "
        "continuous data",
        FIGURE,
        "steps",
        f.ratio_to_error(
            "continuous",
            steps.ADAPTIVE,
            steps.CONSTANT_ENTROPY,
            1e-3,
            f.MUCH,
            "constant, a log a, tuned",
        ),
    ),
    Claim(
        "... and on counts",
        FIGURE,
        "steps",
        f.ratio_to_error(
            "count",
            steps.ADAPTIVE,
            steps.CONSTANT_ENTROPY,
            2e-2,
            f.MUCH,
            "constant, a log a, tuned",
        ),
    ),
    Claim(
        "Jensen steps may be less competitive on counts, especially with many zeros",
        FIGURE,
        "steps",
        rules.weak_on_counts,
    ),
    Claim(
        "A few inner iterations can improve convergence",
        FIGURE,
        "steps",
        rules.inner_iterations_help,
    ),
    Claim(
        "Fibers drawn once or anew for each inner iteration: both work, and once needs fewer "
        "entries",
        REMARK,
        "steps",
        rules.same_fibers_save_entries,
    ),
    Claim(
        "With steps of 1/√T the measure of stationarity falls like C/√T",
        "a theorem",
        "theory",
        rules.root_t_rate,
    ),
    Claim(
        "Counts: SmartCPD improves the MSE quickly in all trials",
        FIGURE,
        "count",
        f.in_all_trials,
    ),
    Claim(
        "Counts: SmartCPD is 4 times as fast as GCP-OPT to an MSE of 0.01 (R = 20)",
        "less than 10 s against at least about 40 s",
        "count",
        f.ratio_to_error("R=20", SMART, GCP, 1e-2, 4.0),
    ),
    Claim(
        "Counts: SmartCPD needs the fewest entries to an MSE of 0.01, in many trials by an order "
        "of magnitude",
        FIGURE,
        "count",
        f.fewer_entries,
    ),
    Claim(
        "Counts: both methods take as long for sampling, GCP-OPT slightly longer for gradient and "
        "update",
        FIGURE,
        "count",
        rules.time_split,
    ),
    Claim(
        "Counts: SmartCPD ends below an MSE of 0.01 at R = 10, 20 and 50",
        "2.7e-3, 3.7e-3, 6.6e-3",
        "count",
        f.low_errors,
    ),
    Claim(
        "Counts: GCP-OPT and GGN do not reach an MSE of 0.1 at R = 50 in 100 s",
        "medians 0.406, 0.281",
        "count",
        f.rivals_at_high_rank,
    ),
    Claim(
        "Zeros and ones: SmartCPD needs much less time to an MSE of 0.01 (15 % ones)",
        FIGURE,
        "binary",
        f.ratio_to_error(binary.SHOWN, SMART, GCP, binary.AIM, f.MUCH),
    ),
    Claim(
        "Zeros and ones: SmartCPD is consistently ahead after 60 s, at all densities",
        "histograms",
        "binary",
        f.ahead_in_pairs,
    ),
    Claim(
        "Zeros and ones: its advantage grows with the share of ones",
        "histograms",
        "binary",
        f.grows_with_density,
    ),
    Claim(
        "Gamma noise: both stochastic methods are faster than GGN",
        FIGURE,
        "continuous",
        rules.faster_than_ggn,
    ),
    Claim(
        "Gamma noise: SmartCPD (Jensen) is faster than GCP-OPT, especially in the beginning",
        FIGURE,
        "continuous",
        rules.ahead_early,
    ),
    Claim(
        "Gamma noise: with Jensen steps alone the MSE levels off after a while",
        FIGURE,
        "continuous",
        rules.jensen_levels_off,
    ),
    Claim(
        "Gamma noise: SmartCPD-Mixed offers the best runtime and MSE of SmartCPD, GCP-OPT and GGN",
        FIGURE,
        "continuous",
        rules.mixed_is_best,
    ),
    Claim(
        "Simplex: SmartCPD converges much faster than block mirror descent",
        FIGURE,
        "simplex",
        f.ratio_to_error("simplex", SMART, MD, 1e-2, f.MUCH),
    ),
    Claim(
        "Chicago: SmartCPD gets soon to a low cost that GCP-OPT and GGN do not attain",
        "about 5 s",
        "chicago",
        real.lower_cost,
    ),
    Claim(
        "Chicago: in some trials, especially at R = 5, GGN does not converge",
        REMARK,
        "chicago",
        real.ggn_fails,
    ),
    Claim(
        "Chicago: the cost where SmartCPD stops",
        "0.043 after 35.81 s",
        "chicago",
        real.printed_cost,
    ),
    Claim(
        "Pollinators: GCP-OPT and GGN work reasonably well",
        REMARK,
        "pollinators",
        real.rivals_work,
    ),
    Claim(
        "Pollinators: SmartCPD converges to a lower cost than both",
        FIGURE,
        "pollinators",
        real.lower_cost,
    ),
    Claim(
        "Pollinators: SmartCPD is about 15 times as fast to low costs as GCP-OPT",
        "15x",
        "pollinators",
        real.ratio_on_real(GCP, 15.0),
    ),
    Claim("... and as GGN", "15x", "pollinators", real.ratio_on_real(GGN, 15.0)),
    Claim(
        "UCI chat: in all trials SmartCPD is at least 40 times as fast to a cost that GCP-OPT "
        "reaches later",
        "40x",
        "uci",
        real.ratio_on_real(GCP, 40.0, in_all_trials=True),
    ),
)
