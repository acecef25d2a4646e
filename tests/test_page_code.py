"""The page that the program writes: its code runs as it stands, and its parts say the same."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smartcpd
from smartcpd._app.cli import main

pytestmark = pytest.mark.usefixtures("elsewhere")

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(smartcpd.__file__).parents[1])}


@pytest.fixture(autouse=True)
def files(elsewhere):
    rng = np.random.default_rng(0)
    rows = ["when;place, where;what;n;people"]
    for _ in range(300):
        place = rng.integers(5)
        when = f"2021-0{rng.integers(1, 7)}-{rng.integers(1, 29):02d}"
        rows.append(f"{when};p{place};{'xyz'[rng.integers(3)]};{rng.integers(1, 9)},5;{place + 1}")
    Path("events.csv").write_text("\n".join(rows) + "\n")
    Path("wide.csv").write_text("name,JAN,FEB,MAR\na,1,2,3\nb,4,5,6\nc,7,8,10\n")
    np.save("counts.npy", rng.poisson(3.0, (8, 7, 6)))


def page_of(*words, folder="run"):
    with pytest.raises(SystemExit, match="0"):
        main(["fit", *words, "--out", folder, "--quiet"])
    return Path(folder, "report.html").read_text("utf-8")


def block(page):
    found = re.search(r"<figcaption>In Python.*?<code>(.*?)</code>", page, re.DOTALL)
    return html.unescape(found[1])


RUNS = [
    ["events.csv", "--modes", '"place, where",when@1mo,what', "--value", "n", "-r", "2"],
    ["events.csv", "--modes", "when,what", "-r", "1", "--where", "what <> 'z'", "--seed", "3"],
    ["events.csv", "--modes", '"place, where",what', "-r", "1", "--exposure", "people"],
    ["events.csv", "--modes", 'what,"place, where"', "-r", "1", "--per", "people"],
    ["wide.csv", "--modes", "name,month", "--melt", "JAN:MAR=month", "-r", "1"],
    ["counts.npy", "-r", "2", "--loss", "poisson", "--constraint", "nonnegative"],
]
SCRIPT = """
import json, sys
for code in json.load(sys.stdin):
    names = {}
    exec(code, names)
    print(repr(names["estimator"].loss_))
"""


@pytest.mark.slow
def test_the_code_of_a_page_makes_the_same_model():
    blocks, losses = [], []
    for number, words in enumerate(RUNS):
        blocks.append(block(page_of(*words, folder=f"run{number}")))
        losses.append(json.loads(Path(f"run{number}/model.json").read_text())["run"]["loss"])
    done = subprocess.run(  # one process for all of them, since it takes seconds to start
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        input=json.dumps(blocks),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [float(line) for line in done.stdout.split()] == pytest.approx(losses, rel=1e-12)


@pytest.mark.parametrize("more", [(), ("--effort", "0")])
def test_the_card_says_what_the_sentence_says(more):
    page = page_of("counts.npy", "-r", "2", "--loss", "gaussian", *more)
    card = re.search(r"<dt>Fit</dt><dd><b>(.*?)</b>", page)[1]
    assert ("Not confirmed" in page.replace(card, "", 1)) == (card == "Not confirmed")
