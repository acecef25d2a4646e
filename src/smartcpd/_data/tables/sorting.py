"""Grouping by sorting numbers, which beats a hash table where there are many cells.

Sums come out the same whatever the order of the rows, hence whatever the number of threads: they
are sums of whole numbers, of which every value has a high and a low part.

Memory that was never used before costs more time than computing, so most is done in place or a
piece at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

LIMB = 52
"""Number of bits in each part of a value; a sum of low parts, carried over, is then exact in a
float.
"""
PIECE = 1 << 16
"""Number of entries worked on at a time, in the processor's cache."""


def counted(word: np.ndarray) -> dict[str, np.ndarray]:
    """Return how many rows have each word, in the order of words; ``word`` is used up."""
    word.sort()
    starts = _starts(word)
    return {"w0": word[: starts.size - 1], "rows": np.diff(starts)}


def summed(
    word: np.ndarray, values: np.ndarray, largest: float, complete: bool
) -> dict[str, np.ndarray]:
    """Return how many rows have each word, and the sums of their values.

    No value is above ``largest`` in size. Unless they are ``complete``, some are NaN, and it is
    counted how many are not. Words together with the numbers of rows must fit into 63 bits.
    """
    bits = word.size.bit_length()
    # Sorting words with their rows is quicker than finding an order.
    row = word.astype(np.int64)
    for piece in pieces(word.size):
        row[piece] <<= bits
        row[piece] |= np.arange(piece.start, piece.stop)
    row.sort()
    np.right_shift(row, bits, out=word, casting="unsafe")
    row &= (1 << bits) - 1
    starts = _starts(word)
    n = starts.size - 1
    columns = {"w0": word[:n], "rows": np.diff(starts), "value": np.empty(n)}
    if not complete:
        columns["used"] = np.empty_like(columns["rows"])
    # The parts have as many bits as the sum over the rows of the fullest cell leaves.
    limb = min(LIMB, 62 - int(columns["rows"].max()).bit_length())
    scale = math.ldexp(1.0, min(2 * limb - math.frexp(largest)[1], 1000))
    for piece in pieces(n):
        begins = starts[piece].astype(np.int64)
        value = values[row[begins[0] : starts[piece.stop]]]
        begins -= begins[0]
        if not complete:
            usable = ~np.isnan(value)
            columns["used"][piece] = np.add.reduceat(usable, begins, dtype=np.int64)
            value[~usable] = 0.0
        value *= scale
        with np.errstate(over="ignore"):
            columns["value"][piece] = _exact_sums(value, begins, limb) / scale
    return columns


def _exact_sums(value: np.ndarray, begins: np.ndarray, limb: int) -> np.ndarray:
    """Return sums of runs of values of up to two limbs, rounded to whole numbers."""
    unit = math.ldexp(1.0, limb)
    high = np.trunc(value / unit)
    low = np.rint(value - high * unit)
    highs = np.add.reduceat(high.astype(np.int64), begins)
    lows = np.add.reduceat(low.astype(np.int64), begins)
    highs += lows >> limb
    lows &= (1 << limb) - 1
    return highs * unit + lows


def _starts(word: np.ndarray) -> np.ndarray:
    """Return where runs of a word begin and the last one ends; one word of each run moves to the
    front.
    """
    n = 1 + sum(int(np.count_nonzero(_begins(word, piece))) for piece in pieces(word.size))
    starts = np.empty(n + 1, np.uint32 if word.size < 1 << 32 else np.int64)
    starts[0], starts[n] = 0, word.size
    done = 1
    for piece in pieces(word.size):
        found = np.flatnonzero(_begins(word, piece))
        found += piece.start
        starts[done : done + found.size] = found
        done += found.size
    for piece in pieces(n):
        word[piece] = word[starts[piece]]
    return starts


def _begins(word: np.ndarray, piece: slice) -> np.ndarray:
    """Say for each word whether it differs from the one before it."""
    if piece.start:
        return word[piece] != word[piece.start - 1 : piece.stop - 1]
    return np.append(False, word[1 : piece.stop] != word[: piece.stop - 1])


def pieces(n: int) -> Iterator[slice]:
    """Yield slices of so many entries, as many at a time as are quick to work with."""
    for start in range(0, n, PIECE):
        yield slice(start, min(start + PIECE, n))
