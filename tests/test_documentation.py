"""Documentation: what is public says what it is for, and the examples run."""

import doctest
import importlib
import inspect
import re
import sys
from enum import Enum
from pathlib import Path

import pytest

import smartcpd
from smartcpd import errors
from smartcpd._fitting.answers.diagnosis import Diagnosis
from smartcpd._fitting.answers.intervals import Intervals
from smartcpd._fitting.consensus.result import Consensus
from smartcpd._inference.selection.cross_validation import CrossValidation
from smartcpd._inference.selection.result import Selection
from smartcpd._problem.history import History, Status

SOURCES = Path(smartcpd.__file__).parent
RETURNED = (Consensus, CrossValidation, Diagnosis, History, Intervals, Selection, Status)
REGISTRIES = ("constraints", "losses", "mirrors", "sampling", "steps")
EXTRAS = {
    "smartcpd._data.labelled": "xarray",
    "smartcpd._data.tables": "pandas",
    "smartcpd._fitting.model_exits": "polars",
    "smartcpd.plots": "matplotlib",
}


def modules_with_examples():
    for path in sorted(SOURCES.rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SOURCES.parent).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__")


def public_names():
    """Every public function and class by its name, once."""
    found = {cls.__name__: cls for cls in RETURNED}
    for name in smartcpd.__all__:
        member = getattr(smartcpd, name)
        if not inspect.ismodule(member):
            found[name] = member
            continue
        found |= {f"{name}.{inner}": getattr(member, inner) for inner in member.__all__}
        if name in REGISTRIES:
            classes = member.registry.classes.values()
            found |= {f"{name}.{cls.__name__}": cls for cls in classes}
    return {name: it for name, it in found.items() if inspect.isclass(it) or callable(it)}


def names_of(cls):
    return vars(cls).keys() | inspect.get_annotations(cls).keys()


PUBLIC = public_names()
FUNCTIONS = [name for name, it in PUBLIC.items() if not inspect.isclass(it)]
CLASSES = [name for name, it in PUBLIC.items() if inspect.isclass(it)]


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_the_examples_run(name, elsewhere):
    for package, needed in EXTRAS.items():
        if name.startswith(package):
            pytest.importorskip(needed)
    result = doctest.testmod(importlib.import_module(name))
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert result.failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_says_what_goes_in_and_what_comes_out(name):
    text, signature = inspect.getdoc(PUBLIC[name]), inspect.signature(PUBLIC[name])
    assert "Examples\n--------\n>>> " in text
    assert not signature.parameters or "Parameters\n----------\n" in text
    assert signature.return_annotation in (None, "None") or "Returns\n-------\n" in text
    for parameter in signature.parameters:
        assert re.search(rf"\b{parameter}\b", text), f"{name} does not explain {parameter}"


@pytest.mark.parametrize("name", CLASSES)
def test_a_public_class_and_its_methods_are_described(name):
    cls = PUBLIC[name]
    shown = ">>> " in inspect.getdoc(cls)
    assert shown or issubclass(cls, Enum | Exception)  # errors are shown by their module
    inherited = {known for base in cls.__mro__[1:] for known in names_of(base)}
    for attribute in vars(cls).keys() - inherited:
        member = getattr(cls, attribute)
        if not attribute.startswith("_") and (callable(member) or isinstance(member, property)):
            assert inspect.getdoc(member), f"{name}.{attribute} has no docstring"


def test_every_error_is_described():
    for name, cls in inspect.getmembers(errors, inspect.isclass):
        assert cls.__doc__, name


def test_no_docstring_begins_with_of():
    for path in SOURCES.rglob("*.py"):
        begins = re.findall(r'^ *r?"""(?:Of|As) [^\n]*', path.read_text(encoding="utf-8"), re.M)
        assert not begins, f"{path.relative_to(SOURCES)}: {begins}"
