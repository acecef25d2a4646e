"""UCI chat, yes/no, ranks 10 and 20: seconds to the loss that pyttb's Adam ends at.

pyttb's gcp_opt runs with its stratified sampler from a random start, to its own end or 30 s; of the
rates 1e-2 and 1e-3, the one with the lower loss on the first seed is used. Losses are exact, over
all 30 million cells.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import peers
from benchmarks.ours import seconds_to, tensor_of
from benchmarks.real_data import uci_chat
from benchmarks.results import Bars, Method, Result, Row, Spread, Verdict, blas_threads
from smartcpd import SmartCPD
from smartcpd._common import threads

SEEDS = range(5)
LIMIT = 30.0


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    yield Method("pyttb", "gcp_opt, Adam, stratified, the better rate", blas_threads())
    limit = 3.0 if quick else LIMIT
    bars: dict[str, dict[str, float | Spread]] = {}
    data = uci_chat()
    X = tensor_of(data)
    for rank in (10,) if quick else (10, 20):
        SmartCPD(rank, "bernoulli-odds", random_state=99, max_epochs=60).fit(X)  # compiles
        ratios, pairs = [], []
        rates = [1e-3] if quick else [1e-2, 1e-3]
        for seed in SEEDS[:1] if quick else SEEDS:
            start = peers.start_for(data, rank, seed)
            runs = {
                rate: peers.pyttb_adam(
                    data, start, "bernoulli-odds", rate, limit, seed=seed, on_its_way=False
                )
                for rate in rates
            }
            for rate, peer in runs.items():
                told = {"rank": rank, "seed": seed, "rate": rate, "loss": f"{peer.loss:.6f}"}
                yield Row("pyttb", told | {"s": peer.seconds})
            rates = [min(runs, key=lambda rate: runs[rate].loss)]
            best = runs[rates[0]]
            fit = SmartCPD(rank, "bernoulli-odds", random_state=seed).fit(X)
            ours = seconds_to(fit.history_, best.loss)
            ratios.append(best.seconds / ours)
            pairs.append((ours, best.seconds))
            yield Row(
                "Seconds to where pyttb ends",
                {
                    "rank": rank,
                    "seed": seed,
                    "loss": f"{best.loss:.6f}",
                    "pyttb": best.seconds,
                    "ours": ours,
                    "times faster": ratios[-1],
                    "ours ends at": f"{fit.loss_:.6f}",
                    "ours in all": fit.history_[-1].time,
                },
            )
        mine, theirs = (Spread.of(list(seconds)) for seconds in zip(*pairs, strict=True))
        bars[f"rank {rank}"] = {"smartcpd": mine, "pyttb": theirs}
        yield Row("Times faster", {"rank": rank, "ratio": Spread.of(ratios)})
        yield Verdict(f"rank {rank}, times faster, the least of the seeds", min(ratios), 40)
    yield Bars("seconds", "UCI chat: time to the loss that pyttb ends at", "seconds", bars)
