"""Measures how an iteration divides its time between sampling, gradient and update.

The compiled loops do not stop between these parts, so that they are timed in plain NumPy, one
thread, both methods written alike; the share of each part is the method's, the seconds are NumPy's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from smartcpd._common import threads

PARTS = ("sampling", "gradient", "update")
EPS = 1e-9
SETTLING = 20
"""Number of first iterations that are not counted."""


@dataclass(frozen=True)
class Breakdown:
    """Median microseconds that an iteration spends on each part."""

    method: str
    parts: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


class _Clock:
    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {part: [] for part in PARTS}
        self.last = 0.0

    def begin(self) -> None:
        self.last = time.perf_counter()

    def end(self, part: str) -> None:
        now = time.perf_counter()
        self.spent[part].append(now - self.last)
        self.last = time.perf_counter()


def measured(X: np.ndarray, rank: int, iterations: int = 300, seed: int = 0) -> list[Breakdown]:
    """Time both stochastic methods of the paper on a third-order tensor of counts."""
    wide = X.astype(np.float64)
    found = []
    with threads.limited_to(1):
        for name, make in (("SmartCPD", smartcpd_iteration), ("GCP-OPT", gcp_iteration)):
            rng = np.random.default_rng(seed)
            A = [rng.random((size, rank)) for size in X.shape]
            iterate = make(wide, A, 2 * rank, rng)
            clock = _Clock()
            for _ in range(iterations + SETTLING):
                iterate(clock)
            # Medians are used, since other programs may hold the core now and then.
            parts = {p: 1e6 * float(np.median(s[SETTLING:])) for p, s in clock.spent.items()}
            found.append(Breakdown(name, parts))
    return found


def smartcpd_iteration(
    X: np.ndarray, A: list[np.ndarray], n_fibers: int, rng: np.random.Generator
) -> Callable[[_Clock], None]:
    """Make an iteration that reads fibers of one mode, with the entropy map and adagrad."""
    S = [np.zeros_like(F) for F in A]

    def iterate(clock: _Clock) -> None:
        clock.begin()
        n = int(rng.integers(3))
        j, k = (m for m in range(3) if m != n)
        rows = rng.integers(X.shape[j], size=n_fibers), rng.integers(X.shape[k], size=n_fibers)
        x = np.moveaxis(X, n, 2)[rows]
        clock.end("sampling")
        H = A[j][rows[0]] * A[k][rows[1]]
        G = (1.0 - x / (H @ A[n].T + EPS)).T @ H / x.size
        clock.end("gradient")
        S[n] += G**2
        A[n] = np.maximum(A[n] * np.exp(-G / np.sqrt(S[n] + 1e-5)), EPS)
        clock.end("update")

    return iterate


def gcp_iteration(
    X: np.ndarray, A: list[np.ndarray], n_fibers: int, rng: np.random.Generator
) -> Callable[[_Clock], None]:
    """Make an iteration that reads as many entries anywhere, with gradients of all modes and
    Adam.
    """
    n_entries = n_fibers * X.shape[0]
    moments = [(np.zeros_like(F), np.zeros_like(F)) for F in A]
    steps = 0

    def iterate(clock: _Clock) -> None:
        nonlocal steps
        clock.begin()
        i = [rng.integers(size, size=n_entries) for size in X.shape]
        x = X[tuple(i)]
        clock.end("sampling")
        rows = [F[index] for F, index in zip(A, i, strict=True)]
        d = (1.0 - x / (np.prod(rows, axis=0).sum(axis=1) + EPS))[:, None] / n_entries
        gradients = []
        for n, F in enumerate(A):
            j, k = (m for m in range(3) if m != n)
            # This adds up the rows that belong to the same index, much faster than np.add.at.
            where = (np.ones(n_entries), i[n], np.arange(n_entries + 1))
            gradients.append(csc_array(where, shape=(len(F), n_entries)) @ (d * rows[j] * rows[k]))
        clock.end("gradient")
        steps += 1
        for F, G, (first, second) in zip(A, gradients, moments, strict=True):
            first += 0.1 * (G - first)
            second += 0.001 * (G**2 - second)
            step = first / (1 - 0.9**steps) / (np.sqrt(second / (1 - 0.999**steps)) + 1e-8)
            np.maximum(F - 1e-2 * step, 0.0, out=F)
        clock.end("update")

    return iterate
