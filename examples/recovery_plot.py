"""The picture in the README: error of the factors against time on the paper's count data."""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from smartcpd import datasets, decompose, metrics

RANK, SEEDS = 20, range(5)
STYLES = {
    "as in the paper": ({"overcomplete": 1, "averaging": False}, "#d55e00"),
    "default": ({}, "#0072b2"),
}


def curve(seed: int, choices: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    X, truth = datasets.count(rank=RANK, random_state=seed)
    rows: list[tuple[float, float]] = []

    def look(report: object) -> None:
        model = report.model()  # type: ignore[attr-defined]
        if model.rank == RANK:
            rows.append((report.record.time, metrics.factor_mse(model, truth)))  # type: ignore[attr-defined]

    decompose(
        X,
        RANK,
        "poisson",
        solver="smd",
        random_state=seed,
        callback=look,
        tol=0,
        dtype="float32",
        **{"max_epochs": 300, **choices},
    )
    seconds, errors = np.array(rows[1:]).T
    return seconds, errors


def main(path: str) -> None:
    curve(0, {"max_epochs": 20})  # imports and compilation stay out of the picture
    figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for name, (choices, colour) in STYLES.items():
        for seed in SEEDS:
            seconds, errors = curve(seed, choices)
            ax.plot(seconds, errors, color=colour, lw=1, alpha=0.7)
        ax.annotate(
            name,
            (seconds[-1], errors[-1]),
            color=colour,
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="seconds (one machine, two cores)",
        ylabel="squared error of the factors",
        xlim=(0.01, 8),
        ylim=(1.5e-3, 1),
    )
    ax.set_title(f"Counts, 100x100x100, rank {RANK}: {len(SEEDS)} runs each", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "recovery.png")
