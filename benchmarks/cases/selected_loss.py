"""The generating loss, chosen by `select` with its defaults: 10 fresh 60x50x40 tensors a kind.

Counts are Poisson or negative-binomial (r = 2) with the same means; positive values have noise in
proportion to their size or of one size. `select` gets the data alone, and finds rank and loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.results import Method, Result
from benchmarks.selecting import COUNT, GAMMA, GAUSSIAN, OVERDISPERSED, outcomes, right_loss, row
from smartcpd._common import threads

SEEDS = range(991_000, 991_010)
CHOSEN = 0.9


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "select with defaults", threads.resolve(None))
    for kind in (COUNT, OVERDISPERSED, GAMMA, GAUSSIAN):
        found = outcomes(kind, SEEDS[:1] if quick else SEEDS)
        yield row(kind, found)
        yield right_loss(kind, found, CHOSEN)
