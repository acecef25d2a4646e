"""Dense data larger than memory: a part of it, then tiles, each read once.

A fit to some rows of every mode is extended to all of them (`subtensor_fit`), which reads little of
the array; descents on tiles go on from there.
"""

from __future__ import annotations

from smartcpd._common.stacked import stack
from smartcpd._methods.base import Result
from smartcpd._methods.tile_descents import TileDescents, check_tiles, tile_descents
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.starts import random_factors
from smartcpd._strategies.subtensor_fit import SubtensorFit


def _run(search: Search) -> Result:
    problem, settings, rng = search.problem, search.settings, search.rng
    fit = TileDescents(problem, settings, search.observe, rng)
    part = SubtensorFit(problem, settings, fit.tracker, fit.region, rng)
    fit.begin(stack(random_factors(problem, problem.rank, rng)))
    return fit.solve(part.extended)


tiled = Strategy(
    "tiled",
    _run,
    lambda problem: tile_descents,
    lambda problem: check_tiles(problem, "tiled"),
    compares_starts=True,
    reads_parts=True,
)
