"""The ledger of a soak: how much was tried, and what went wrong with how to repeat it."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Ledger:
    """Counts by name, and failures; every failure is printed when it happens."""

    part: str
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def count(self, name: str, many: int = 1) -> None:
        self.counts[name] += many

    def fail(self, repeat: str, what: str) -> None:
        """Remember a failure; ``repeat`` is what makes it happen again."""
        self.failures.append(f"{repeat}: {what}")
        print(f"FAILURE {self.part} seed={self.seed} {repeat}\n  {what}", flush=True)

    def expect(self, holds: bool, repeat: str, what: str) -> None:
        if not holds:
            self.fail(repeat, what)

    @property
    def summary(self) -> str:
        counts = ", ".join(f"{many:,} {name}" for name, many in self.counts.items())
        seconds = time.monotonic() - self.began
        return (
            f"{self.part}, seed {self.seed}, {seconds:.0f} s: {counts}; "
            f"{len(self.failures)} failures"
        )

    def close(self, log: Path | None) -> int:
        """Print the summary, add a line to the log, and return an exit code."""
        print(self.summary, flush=True)
        if log is not None:
            kept = {
                "part": self.part, "seed": self.seed, "seconds": time.monotonic() - self.began,
                "counts": self.counts, "failures": self.failures,
            }  # fmt: skip
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps(kept) + "\n")
        return int(bool(self.failures))


def table(lines: list[str]) -> str:
    """Return what a soak tried and found, part by part, as a table of Markdown."""
    rows = ["| part | seed | minutes | tried | failures |", "|---|---|---|---|---|"]
    for kept in map(json.loads, lines):
        tried = ", ".join(f"{many:,} {name}" for name, many in kept["counts"].items())
        minutes, failures = kept["seconds"] / 60, len(kept["failures"])
        rows.append(f"| {kept['part']} | {kept['seed']} | {minutes:.0f} | {tried} | {failures} |")
    return "\n".join(rows)
