"""Two worker processes with a thread each against one process with a thread: 5.3 M nonzeros.

Poisson, rank 10. Seconds on the clock on the wall, from a folder on disk to the first model whose
loss is within 0.05 % of the lower of the final losses; compiled code is loaded before.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.clusters import counts, local_cluster, on_disk, warm, watched
from benchmarks.results import Method, Remark, Result, Row, Spread, Verdict

REPEATS = 3


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults, n_threads=1; client= with two workers of a thread")
    X = counts(quick)
    with on_disk(X) as folder, local_cluster(2) as client:
        warm(client)
        pairs = []
        for _ in range(1 if quick else REPEATS):
            pairs.append((watched(folder), watched(folder, client)))
    target = 1.0005 * min(min(a.fit.loss_, b.fit.loss_) for a, b in pairs)
    one, two = zip(*pairs, strict=True)
    for name, fits in (("one process", one), ("two workers", two)):
        yield Row(
            "Fits",
            {
                "by": name,
                "s to the loss": Spread.of([f.until(target) for f in fits]),
                "s in all": Spread.of([f.seconds for f in fits]),
                "loss": f"{fits[0].fit.loss_:.7f}",
            },
        )
    yield Remark(two[0].fit.status_.reason)
    ratios = [a.until(target) / b.until(target) for a, b in pairs]
    differences = [abs(a.fit.loss_ / b.fit.loss_ - 1) for a, b in pairs]
    yield Verdict("times faster to the same loss", Spread.of(ratios).median, 1.5)
    yield Verdict("difference of final losses, %", 100 * max(differences), 0.05, at_most=True)
