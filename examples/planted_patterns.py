"""What this library does, in a few seconds: hidden patterns of events found in a table of counts.

We invent a month of calls to a city's help line, counted by day, hour and district. Four patterns
are behind them. The counts alone go to `SmartCPD`; then we look at what it found.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console

from smartcpd import SmartCPD, metrics

DAYS, HOURS, DISTRICTS = 56, 24, 40
BLOCKS = " ▁▂▃▄▅▆▇█"


def bump(n: int, centre: float, width: float) -> np.ndarray:
    """A smooth hill on a circle of n points."""
    distance = np.abs(np.arange(n) - centre)
    return np.exp(-0.5 * (np.minimum(distance, n - distance) / width) ** 2)


def make_calls(rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
    weekday = np.arange(DAYS) % 7
    names = ["commuting", "nightlife", "a storm", "school days"]
    days = [
        np.where(weekday < 5, 1.0, 0.2),
        np.where(weekday >= 4, 1.0, 0.15),
        bump(DAYS, 33, 1.2),
        np.where(weekday < 5, 1.0, 0.05) * (np.arange(DAYS) < 30),
    ]
    hours = [
        bump(HOURS, 8, 1.3) + bump(HOURS, 17.5, 1.6),
        bump(HOURS, 23.5, 2.2),
        np.ones(HOURS),
        bump(HOURS, 14, 1.5),
    ]
    places = [rng.gamma(0.6, 1.0, DISTRICTS) for _ in names]
    factors = [np.stack(columns, axis=1) + 1e-3 for columns in (days, hours, places)]
    mean = 1.5 * np.einsum("ir,jr,kr->ijk", *factors)
    return rng.poisson(mean).astype(np.uint8), factors, names


def sparkline(values: np.ndarray) -> str:
    """A row of block characters, as tall as the values."""
    levels = np.round(values / values.max() * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[level] for level in levels)


def main() -> None:
    console = Console()
    X, truth, names = make_calls(np.random.default_rng(0))
    console.print(
        f"{X.sum():,} calls in a table of {' x '.join(map(str, X.shape))} "
        f"(day x hour x district); {np.mean(X == 0):.0%} of its cells are empty.\n"
    )
    fit = SmartCPD(rank=4, loss="poisson", random_state=0).fit(X)
    console.print(f"{fit.status_}\n")

    model = fit.model_.normalize(1).align(type(fit.model_)(truth).normalize(1))
    for r, name in enumerate(names):
        busiest = np.argsort(-model.factors[2][:, r])[:3]
        share = model.weights[r] / model.weights.sum()
        console.print(f"[bold]{name}[/bold], {share:.0%} of the calls")
        console.print(f"  8 weeks    {sparkline(model.factors[0][:, r])}")
        console.print(f"  24 hours   {sparkline(model.factors[1][:, r])}")
        console.print(f"  busiest    {', '.join(f'district {d}' for d in busiest)}")
    score = metrics.factor_match_score(model, truth)
    seconds = fit.history_[-1].time
    console.print(
        f"\nSimilarity to the planted patterns: {score:.3f} of 1. "
        f"{fit.history_[-1].epoch} epochs took {seconds:.2f} s."
    )


if __name__ == "__main__":
    main()
