"""Chicago crime 2022, counts, rank 10: seconds to a mean loss of 0.04422, against pyttb and GenTen.

The peers and ``mm`` begin at the same random factors. The default fit makes its own start, which is
part of its time. Reading and sorting the data count for nobody.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks import peers
from benchmarks.harness import verdict
from benchmarks.ours import seconds_to, tensor_of
from benchmarks.real_data import chicago_2022
from smartcpd import SmartCPD

RANK, TARGET, LIMIT = 10, 0.04422, 120.0
SEEDS = range(5)


def run() -> Iterator[str]:
    data = chicago_2022()
    X = tensor_of(data)
    start = peers.start_for(data, RANK, seed=0)
    times, ends, whole = [], [], []
    for seed in (0, *SEEDS):  # the first compiles
        history = SmartCPD(RANK, "poisson", random_state=seed).fit(X).history_
        times.append(seconds_to(history, TARGET))
        ends.append(history[-1].loss)
        whole.append(history[-1].time)
    ours = statistics.median(times[1:])
    yield (
        f"ours, default: {ours:.2f} s ({min(times[1:]):.2f}-{max(times[1:]):.2f}, {len(SEEDS)} "
        f"seeds); ends at {min(ends[1:]):.6f}-{max(ends[1:]):.6f} after "
        f"{statistics.median(whole[1:]):.2f} s"
    )
    history = SmartCPD(RANK, "poisson", init=start).fit(X).history_
    yield f"ours, mm from the same start: {seconds_to(history, TARGET):.2f} s"
    runs = [
        peers.pyttb_apr(data, start, "mu", LIMIT),
        peers.pyttb_apr(data, start, "pdnr", LIMIT),
        peers.genten_lbfgsb(data, start),
        peers.genten_sgd(data, start, "poisson", LIMIT),
    ]
    for peer in runs:
        reached = peer.seconds_to(TARGET)
        yield (
            f"{peer.description}: reached in {reached:.1f} s, ends at {peer.loss:.6f} after "
            f"{peer.seconds:.1f} s"
        )
    for name in ("pyttb", "GenTen"):
        best = min(
            peer.seconds_to(TARGET) if peer.loss <= TARGET else peer.seconds
            for peer in runs
            if peer.description.startswith(name)
            and (peer.loss <= TARGET or not any_reached(runs, name))
        )
        yield verdict(f"times faster than the best of {name}", best / ours, 20)


def any_reached(runs: list[peers.PeerRun], name: str) -> bool:
    return any(r.description.startswith(name) and r.loss <= TARGET for r in runs)
