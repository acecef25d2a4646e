"""UCI chat, yes/no, ranks 10 and 20: seconds to the loss that pyttb's Adam ends at.

pyttb's gcp_opt runs with its stratified sampler and rates 1e-2 and 1e-3 from a random start; the
rate with the lower loss counts. Losses are exact, over all 30 million cells.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks import peers
from benchmarks.harness import verdict
from benchmarks.ours import seconds_to, tensor_of
from benchmarks.real_data import uci_chat
from smartcpd import SmartCPD

SEEDS = range(5)


def run() -> Iterator[str]:
    data = uci_chat()
    X = tensor_of(data)
    for rank in (10, 20):
        SmartCPD(rank, "bernoulli-odds", random_state=99, max_epochs=60).fit(X)  # compiles
        ratios = []
        for seed in SEEDS:
            start = peers.start_for(data, rank, seed)
            runs = [
                peers.pyttb_adam(data, start, "bernoulli-odds", rate, seed=seed)
                for rate in (1e-2, 1e-3)
            ]
            best = min(runs, key=lambda r: r.loss)
            fit = SmartCPD(rank, "bernoulli-odds", random_state=seed).fit(X)
            ours = seconds_to(fit.history_, rank, best.loss)
            ratios.append(best.seconds / ours)
            yield (
                f"rank {rank}, seed {seed}: {best.description} ends at {best.loss:.6f} after "
                f"{best.seconds:.1f} s; ours is there in {ours:.2f} s and ends at {fit.loss_:.6f} "
                f"after {fit.history_[-1].time:.2f} s: {ratios[-1]:.0f}x"
            )
        yield verdict(f"rank {rank}, times faster, the least of 5 seeds", min(ratios), 40)
        yield f"rank {rank}: median {statistics.median(ratios):.0f}x"
