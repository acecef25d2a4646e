"""``python -m benchmarks [case ...]`` runs cases and prints their figures."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks.cases
from benchmarks.harness import machine
from benchmarks.real_data import NoDataError


def main(names: list[str]) -> None:
    available = [m.name for m in pkgutil.iter_modules(benchmarks.cases.__path__)]
    unknown = set(names) - set(available)
    if unknown:
        sys.exit(f"Unknown case {', '.join(sorted(unknown))}. Cases: {', '.join(available)}.")
    print(machine(), flush=True)
    for name in names or available:
        case = importlib.import_module(f"benchmarks.cases.{name}")
        print(f"\n== {name}: {case.__doc__.strip().splitlines()[0]}", flush=True)
        try:
            for line in case.run():
                print(line, flush=True)
        except NoDataError as reason:
            print(f"skipped: {reason}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
