"""Documentation: what is public says what it is for, and the examples run."""

import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest

import smartcpd

SOURCES = Path(smartcpd.__file__).parent
EXTRAS = {
    "smartcpd._data.labelled": ["pandas", "xarray"],
    "smartcpd._data.tables": ["pandas"],
    "smartcpd._fitting.answers": ["matplotlib", "pandas"],
    "smartcpd._fitting.consensus": ["matplotlib"],
    "smartcpd._fitting.model_exits": [
        "matplotlib",
        "pandas",
        "polars",
        "pyttb",
        "tensorly",
        "xarray",
    ],
    "smartcpd._inference.replication": ["matplotlib", "pandas"],
    "smartcpd._inference.selection.result": ["matplotlib", "pandas"],
    "smartcpd._problem.history": ["matplotlib"],
    "smartcpd.distributed": ["distributed"],
    "smartcpd.plots": ["matplotlib"],
    "smartcpd.quality.result": ["matplotlib"],
}
"""Packages that examples need besides those that smartcpd cannot do without."""
REAL_DATA = {
    "smartcpd.datasets.chicago": ["FROSTT", "TABLE_2022"],
    "smartcpd.datasets.flower_visits": ["SA026", "TABLE_2014"],
    "smartcpd.datasets.uci": ["COLLEGE_MSG"],
}
"""Files of which an example needs one, in the folder that SMARTCPD_DATA names."""


SLOW = {"smartcpd.datasets.chicago"}


def modules_with_examples():
    for path in sorted(SOURCES.rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SOURCES.parent).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            yield pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_the_examples_run(name, elsewhere):
    for package, needed in EXTRAS.items():
        if name.startswith(package):
            for extra in needed:
                pytest.importorskip(extra)
    module = importlib.import_module(name)
    files = [getattr(module, file) for file in REAL_DATA.get(name, ())]
    if files and not any(file.found() for file in files):
        pytest.skip(f"set SMARTCPD_DATA to a folder with {files[-1].names[0]}")
    result = doctest.testmod(module)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert result.failed == 0


def test_no_example_is_left_out():
    for path in SOURCES.rglob("*.py"):
        assert "doctest: +SKIP" not in path.read_text(encoding="utf-8"), path.relative_to(SOURCES)


def test_no_docstring_begins_with_of():
    for path in SOURCES.rglob("*.py"):
        begins = re.findall(r'^ *r?"""(?:Of|As) [^\n]*', path.read_text(encoding="utf-8"), re.M)
        assert not begins, f"{path.relative_to(SOURCES)}: {begins}"
