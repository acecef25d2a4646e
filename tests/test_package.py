"""The package: what is in it, the versions it names, and that it runs where it is installed."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lower_bounds():
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    for line in [*PROJECT["dependencies"], *extras]:
        found = re.fullmatch(r"([\w.-]+)>=([\d.]+)", line)
        assert found or line.startswith("smartcpd["), f"{line}: a lower bound, and no upper one"
        if found:
            yield found[1], found[2]


def numbers(version):
    return [int(part) for part in version.split(".")]


def test_the_lowest_versions_are_those_that_are_tested():
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    for name, bound in lower_bounds():
        lowest = numbers(bound)
        assert numbers(pinned[name])[: len(lowest)] == lowest, name


def test_the_recipe_and_the_citation_say_the_same():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text()
    for line in PROJECT["dependencies"]:
        name, bound = line.split(">=")
        assert re.search(rf"- (python-)?{name} >={re.escape(bound)}\n", recipe), name
    # A version for every interpreter that is said to be tested, the lowest among them.
    versions = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if " 3." in c]
    assert PROJECT["requires-python"] == f">={versions[0]}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The archive of sources, made as for a release."""
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="hatchling is not installed")
    pytest.importorskip("hatch_fancy_pypi_readme", reason="the plugin for the README is missing")
    folder = tmp_path_factory.mktemp("dist")
    return Path(next(sdist.SdistBuilder(str(ROOT)).build(directory=str(folder))))


@pytest.mark.slow
def test_the_archive_holds_all_that_tests_read(archive, tmp_path):
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    unpacked = next(tmp_path.iterdir())
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    missing = [name for name in tracked if not (unpacked / name).exists()]
    assert not [name for name in missing if not name.startswith(".")]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "tests/test_loss_choice.py", "-x"]
    there = dict(os.environ, PYTHONPATH=str(unpacked / "src"))
    ended = subprocess.run(command, cwd=unpacked, env=there, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-2000:]


@pytest.mark.slow
def test_a_wheel_of_the_archive_goes_from_a_table_to_a_page(archive, tmp_path):
    wheels = pytest.importorskip("hatchling.builders.wheel")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "sources", filter="data")
    unpacked = next((tmp_path / "sources").iterdir())
    wheel = next(wheels.WheelBuilder(str(unpacked)).build(directory=str(tmp_path)))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), wheel], check=True)
    (tmp_path / "sales.csv").write_text(
        "day,shop,n\n" + "".join(f"{d},{s},{1 + (d * s) % 3}\n" for d in range(8) for s in range(6))
    )
    # Nothing but the installed package and what it depends on: not this folder, not these sources.
    there = dict(os.environ, PYTHONPATH=str(tmp_path / "site"))
    where = "import smartcpd; print(smartcpd.__file__)"
    said = subprocess.check_output(
        [sys.executable, "-c", where], cwd=tmp_path, env=there, text=True
    )
    assert Path(said.strip()).is_relative_to(tmp_path / "site")
    fit = ["fit", "sales.csv", "--modes", "day,shop", "--value", "n", "--rank", "1", "--out", "run"]
    ended = subprocess.run(
        [sys.executable, "-m", "smartcpd", *fit], cwd=tmp_path, env=there, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "</html>" in (tmp_path / "run" / "report.html").read_text()


class Addresses(HTMLParser):
    """The addresses that a page of HTML names, of links and pictures alike."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("href", "src")]


def test_no_link_or_picture_of_the_description_leads_nowhere_on_a_registry(archive):
    # A registry shows the description apart from the files beside it.
    with tarfile.open(archive) as tar:
        name = next(name for name in tar.getnames() if name.endswith("PKG-INFO"))
        metadata = email.message_from_bytes(tar.extractfile(name).read())
    assert metadata["Description-Content-Type"] == "text/markdown"
    description = metadata.get_payload()
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(description)
    assert [a for a in Addresses(page).found if not a.startswith(("https://", "mailto:"))] == []
    # What stands in brackets is the text of a link that is gone, or it was never one.
    assert "](" not in description
    assert "![" not in description
    # Text that goes with what was left out is left out with it, and the rest is there.
    assert "pip install smartcpd " in description
    assert "The page about crime" not in description
    headings = re.findall(r"^#+ .*$", description, re.M)
    assert headings == re.findall(r"^#+ .*$", (ROOT / "README.md").read_text(), re.M)


def test_what_a_registry_would_refuse(archive):
    check = pytest.importorskip("twine.commands.check", reason="twine is not installed")
    assert check.check([str(archive)], strict=True) is False  # False: nothing failed
