"""The memory and time that a fit of an array on disk takes, known before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from smartcpd._common.memory import readable
from smartcpd.errors import IncompatibleError, InvalidParameterError

TILES_IN_MEMORY = 2
"""The tile that is worked on, and the next one."""


@dataclass(frozen=True)
class TiledFitNeeds:
    """What a fit of some rank to an array that is read tile by tile takes."""

    title: str
    """What messages call the array."""
    shape: tuple[int, ...]
    rank: int
    array_bytes: int
    max_memory: int
    tile_bytes: int
    """Bytes of the largest tile."""
    n_tiles: int
    factor_bytes: int
    """Bytes of the factors and of what their steps keep."""
    seconds: float
    """Seconds to read all blocks once."""

    def check(self) -> None:
        tiles = TILES_IN_MEMORY * self.tile_bytes
        needed = tiles + self.factor_bytes
        if needed > self.max_memory:
            raise InvalidParameterError(
                f"A fit of rank {self.rank} to {self.title} of shape {self.shape} needs about "
                f"{readable(needed)} of memory: {readable(self.factor_bytes)} for factors and "
                f"their steps, {readable(tiles)} for data; max_memory is "
                f"{readable(self.max_memory)}. Allow more, ask for a lower rank, or store the "
                "array in smaller chunks."
            )

    def refusal(self, reader: str, able: str) -> IncompatibleError:
        return IncompatibleError(
            f"{reader[:1].upper()}{reader[1:]} needs X in memory, and {self.title} of shape "
            f"{self.shape} is larger than max_memory allows. Allow more, or use one of the "
            f"solvers {able}."
        )

    def __str__(self) -> str:
        return (
            f"{self.title} of {readable(self.array_bytes)}, read in {self.n_tiles:,} tiles of up "
            f"to {readable(self.tile_bytes)}, two of them in memory (max_memory "
            f"{readable(self.max_memory)}); factors and their steps take "
            f"{readable(self.factor_bytes)}; reading all of it once would take about "
            f"{self.seconds:.0f} s"
        )
