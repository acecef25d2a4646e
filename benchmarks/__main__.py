"""``python -m benchmarks [--quick] [case ...]`` runs cases and keeps and prints their figures."""

from __future__ import annotations

import sys

from benchmarks.harness import machine
from benchmarks.runner import available, run_named


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    names = [name for name in arguments if name != "--quick"]
    unknown = sorted(set(names) - set(available()))
    if unknown:
        sys.exit(f"Unknown case {', '.join(unknown)}. Cases: {', '.join(available())}.")
    print(machine(), flush=True)
    run_named(names, quick)


if __name__ == "__main__":
    main(sys.argv[1:])
