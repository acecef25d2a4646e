"""50 million rows of Parquet to a sparse tensor: memory, and time against DuckDB alone."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks.results import Method, Remark, Result, Row, Spread, Verdict

N_ROWS = int(os.environ.get("SMARTCPD_BENCH_ROWS", 50_000_000))
REPEATS = 3
TABLE = """
COPY (
    SELECT DATE '2015-01-01' + CAST(u(i, 0) ** 0.8 * 3000 AS INTEGER) AS day,
           CAST(floor(u(i, 1) ** 1.5 * 24) AS TINYINT) AS hour,
           CAST(floor(u(i, 2) ** 3 * 77) AS INTEGER) AS area,
           'type ' || CAST(floor(u(i, 3) ** 6 * 32) AS INTEGER) AS type,
           u(i, 4) * 100 AS amount
    FROM range({rows}) AS t(i)
) TO '{path}' (FORMAT parquet)
"""
UNIFORM = "CREATE MACRO u(i, k) AS hash(i * 8 + k) / 18446744073709551616.0"
"""Numbers between 0 and 1 that depend on the row only."""
DIRECT = "SELECT day, hour, area, type, {what} AS value FROM '{path}' GROUP BY ALL"
MEASURED = """
import json, resource, sys, time
path, what, query = sys.argv[1:]
import duckdb, smartcpd, smartcpd._data.tables
smartcpd.SparseTensor([[0, 0], [1, 1]])
began = time.perf_counter()
if query:
    duckdb.sql("SET enable_progress_bar = false")
    # The least that a group-by can do with its result: keep it.
    duckdb.sql("CREATE TEMP TABLE cells AS " + query)
    nnz = duckdb.sql("SELECT count(*) FROM cells").fetchall()[0][0]
else:
    X = smartcpd.from_table(path, "day,hour,area,type", None if what == "count" else "amount")
    nnz = X.tensor.nnz
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([seconds, peak, nnz]))
"""


def run(quick: bool = False) -> Iterator[Result]:
    rows = N_ROWS // 10 if quick else N_ROWS
    yield Method("duckdb", "the same group-by, its result kept in a table", os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        with duckdb.connect() as connection:
            connection.execute(UNIFORM)
            connection.execute(TABLE.format(rows=rows, path=path))
        yield Remark(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB of Parquet.")
        for what, aggregate in (("count", "count(*)"), ("sum", "sum(amount)")):
            yield from _compared(what, path, DIRECT.format(what=aggregate, path=path))


def _compared(what: str, path: Path, query: str) -> Iterator[Result]:
    ours, direct = [], []
    for _ in range(REPEATS):
        direct.append(_in_a_child(path, what, query))
        ours.append(_in_a_child(path, what, ""))
    for name, runs in (("from_table", ours), ("DuckDB alone", direct)):
        yield Row(
            "From a table to a tensor",
            {
                "what": f"{what}, {name}",
                "seconds": Spread.of([run[0] for run in runs]),
                "peak memory, GB": max(run[1] for run in runs) / 1e9,
                "cells": int(runs[0][2]),
            },
        )
    ratio = statistics.median(run[0] for run in ours) / statistics.median(run[0] for run in direct)
    yield Verdict(f"{what}: time against DuckDB alone", ratio, 1.2, at_most=True)
    peak = max(run[1] for run in ours) / 1e9
    yield Verdict(f"{what}: peak memory, GB", peak, 4, at_most=True)


def _in_a_child(path: Path, what: str, query: str) -> list[float]:
    command = [sys.executable, "-c", MEASURED, str(path), what, query]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)
