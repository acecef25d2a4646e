"""The planted rank, found by `select` with its defaults: 10 fresh 60x50x40 tensors of each kind.

Ranks 3 to 10 for counts and gamma data, 2 to 5 for yes/no data, each in turn. A rank counts as
found if it is exactly the planted one.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.results import Method, Result
from benchmarks.selecting import BINARY, COUNT, GAMMA, exact, in_time, outcomes, row
from smartcpd._common import threads

SEEDS = range(990_000, 990_010)
FOUND = 0.8


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "select with defaults", threads.resolve(None))
    for kind in (COUNT, GAMMA, BINARY):
        found = outcomes(kind, SEEDS[:1] if quick else SEEDS)
        yield row(kind, found)
        yield exact(kind, found, FOUND)
        yield in_time(kind, found)
