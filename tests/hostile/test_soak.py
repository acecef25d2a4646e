"""The soak in its short form: a few trials of every part, from a fixed seed.

``make soak`` runs the same parts for an hour, from a seed of choice.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "number"),
    [
        (101, 770),  # "Converged" after steps so few that slow progress looked like none
        (902, 957),
        (902, 1809),
        (900, 146),  # a loss whose eps is that of other units
        (900, 647),  # a step of length 0
    ],
)
def test_what_was_found_before(seed, number, tmp_path):
    arguments = [str(each) for each in (seed, number, 1, 60)]
    path = os.pathsep.join(map(str, [SOAK, SOAK.parent, SOAK.parent.parent, *sys.path]))
    done = subprocess.run(
        [sys.executable, SOAK / "fits.py", *arguments],
        capture_output=True, text=True, timeout=600, check=True,
        env=os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": path},
    )  # fmt: skip
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["number"] == number
    assert not told["faults"]
