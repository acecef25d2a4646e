"""The soak in its short form: a few trials of every part, from a fixed seed.

``make soak`` runs the same parts for an hour, from a seed of choice.
"""

import importlib
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from smartcpd._fitting.fit import fit

SOAK = Path(__file__).parent / "soak"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals and forks")
@pytest.mark.parametrize(
    ("part", "count"),
    [("fits", 15), ("kills", 1), ("file_system", 4), ("processes", 3)],
)
def test_part(part, count, tmp_path):
    command = [sys.executable, SOAK, part, "--count", str(count), "--seconds", "120"]
    environment = os.environ | {"TMPDIR": str(tmp_path), "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "; 0 failures" in done.stdout
    assert "s: ;" not in done.stdout, "nothing was tried"


@pytest.mark.parametrize(
    ("seed", "number"),
    [(3140, 1828), (3160, 1922), (7005, 3244)],
    ids=["rayleigh, an outlier", "beta(2), holes", "beta(1.5), stale memory"],
)
def test_a_fit_that_is_slow_near_a_saddle_is_not_called_done(seed, number, tmp_path, monkeypatch):
    for folder in (SOAK.parent, SOAK):
        monkeypatch.syspath_prepend(str(folder))
    case = importlib.import_module("fit_cases").case(seed, number, tmp_path)
    parameters = case.parameters | {"max_time": None}
    found = fit(case.X, **parameters, **case.more)
    start = found.model.distribute().factors
    longer = parameters | {"init": start, "tol": 0.0, "n_init": 1, "max_epochs": 500}
    on = fit(case.X, **longer, **case.more)
    assert found.status.converged
    assert found.loss < on.loss + 1e-3 * abs(on.loss)


def test_lanes_share_the_time_and_end_with_a_table():
    soak = runpy.run_path(str(SOAK / "__main__.py"), run_name="soak")
    assert all(abs(sum(lane.values()) - 1) < 1e-9 for lane in soak["LANES"])
    assert {path.stem for path in SOAK.glob("*.py")} >= set(soak["PARTS"])
    kept = {"part": "fits", "seed": 3, "seconds": 90.0, "counts": {"fits": 5000}, "failures": []}
    assert soak["table"]([json.dumps(kept)]).endswith("| fits | 3 | 2 | 5,000 fits | 0 |")
