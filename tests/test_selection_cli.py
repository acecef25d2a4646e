"""``smartcpd select``, from a file to a table, a picture and a sentence."""

import json

import numpy as np
import pytest

from smartcpd import datasets

pytestmark = pytest.mark.usefixtures("elsewhere")
QUICK = ("--cv", "2", "--restarts", "1", "--jobs", "1")


@pytest.fixture
def tensor(tmp_path):
    X = datasets.count((14, 12, 10), 1, a_max=2.0, random_state=0).data
    path = tmp_path / "counts.npy"
    np.save(path, X)
    return path


def test_a_tensor(run, tensor, tmp_path):
    code, out, err = run("select", tensor, "--ranks", "1-2", "--losses", "poisson", *QUICK)
    assert code == 0, err
    assert "->  poisson     1" in out
    assert "Use rank 1 with loss poisson" in out
    assert "Picture: counts-select.png" in out
    assert (tmp_path / "counts-select.png").stat().st_size > 1000
    assert "--rank 1 --loss poisson" in err


def test_json(run, tensor, tmp_path):
    code, out, err = run(
        "select", tensor, "--ranks", "1,2", "--losses", "poisson,gaussian", "--json", "--quiet",
        "--no-plot", "--holdout", "fibers", "--fiber-mode", "1", *QUICK,
    )  # fmt: skip
    assert code == 0, err
    assert err == ""
    found = json.loads(out)
    assert found["rank"] == 1
    assert {row["loss"] for row in found["table"]} == {"poisson", "gaussian"}
    assert found["picture"] is None
    assert not list(tmp_path.glob("*.png"))


def test_a_table(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers((6, 5, 4), size=(600, 3))
    text = "\n".join(["a,b,c", *(f"a{i},b{j},c{k}" for i, j, k in rows)])
    (tmp_path / "events.csv").write_text(text)
    code, out, err = run(
        "select", "events.csv", "--modes", "a,b,c", "--ranks", "1", "--losses", "poisson",
        "--quiet", "--plot", "choice.svg", *QUICK,
    )  # fmt: skip
    assert code == 0, err
    assert out.startswith("Use rank 1")
    assert (tmp_path / "choice.svg").read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--ranks", "5-2"], 2, "is not of the form LOW-HIGH"),
        (["--ranks", "many"], 2, "is not of the form LOW-HIGH"),
        (["--losses", "poison"], 1, "poisson"),
        (["--plot", "picture.xyz"], 1, "no ending of a picture"),
        (["--plot", "nowhere/picture.png"], 1, "there is no folder"),
        (["--holdout", "rows"], 1, "'cells' or 'fibers'"),
        (["--modes", "a,b"], 1, "is for tables"),
    ],
)
def test_refusals(run, tensor, arguments, code, sentence):
    found, _, err = run("select", tensor, *arguments)
    assert found == code
    assert sentence in " ".join(err.split())
