"""Docstrings: whatever is public can be understood and called without the code beside it.

Public are the names that ``dir(smartcpd)`` lists, those in the ``__all__`` of its public modules,
the pieces that these modules register (losses, mirror maps, constraints, step rules, samplers), and
the classes of what fits and checks give back. Of a public class it is every method, property and
attribute without a leading underscore that this class, or another class of this package that it
comes from, has. What comes from elsewhere (tuple, dict, Enum, Exception, Protocol, scikit-learn) is
not ours to describe.

The rules, in plain words:

* Everything has a docstring, whose first paragraph is a sentence. A method that overrides another,
  or stands where an attribute is declared and described, may leave the words to that one.
* A function or a method has a section Parameters that names each of its parameters, if it has any.
* It has a section Returns (a generator may say Yields), unless its annotation says that nothing
  comes back.
* A class names what it is made from in Parameters, and what it holds in Attributes; a field or an
  attribute may also have a docstring of its own, below it.
* A function, a class and a method are shown in an example that uses them by name. For a method, an
  example in the docstring of its class is enough.
* A property needs its sentence and no more.
* Errors and enums need a sentence, too, and neither sections nor an example.
* Modules have a docstring.
"""

import ast
import dataclasses
import doctest
import functools
import inspect
import re
import textwrap
from enum import Enum

import pytest

import smartcpd
from smartcpd._fitting.answers.diagnosis import Diagnosis
from smartcpd._fitting.answers.intervals import Intervals
from smartcpd._fitting.answers.relations import Relations
from smartcpd._fitting.consensus.result import Consensus
from smartcpd._inference.replication import Replication
from smartcpd._inference.selection.cross_validation import CrossValidation
from smartcpd._inference.selection.result import Selection
from smartcpd._problem.history import History, Status

RETURNED = (
    Consensus,
    CrossValidation,
    Diagnosis,
    History,
    Intervals,
    Relations,
    Replication,
    Selection,
    Status,
)
"""Classes of what fits and checks give back, as docs/reference/api/results.md lists them."""
METHOD_KINDS = (staticmethod, classmethod)
PROPERTY_KINDS = (property, functools.cached_property)


def public_names():
    """Return every public function, class and module by its name, once."""
    found = {cls.__name__: cls for cls in RETURNED}
    for name in dir(smartcpd):
        member = getattr(smartcpd, name)
        found[name] = member
        if not inspect.ismodule(member):
            continue
        found |= {f"{name}.{inner}": getattr(member, inner) for inner in member.__all__}
        if "registry" in member.__all__:
            classes = member.registry.classes.values()
            found |= {f"{name}.{cls.__name__}": cls for cls in classes}
            found["Registry"] = type(member.registry)
    unique = {id(it): name for name, it in reversed(found.items())}
    chosen = {name: it for name, it in found.items() if unique[id(it)] == name}
    return {name: it for name, it in chosen.items() if inspect.ismodule(it) or callable(it)}


def is_ours(cls):
    return cls.__module__.startswith("smartcpd.")


def own_classes(cls):
    """Return a class and those of this package that it comes from, the nearest first."""
    return [base for base in cls.__mro__ if is_ours(base)]


def members(cls):
    """Return the public methods and properties of a class as they are written in it."""
    found = {}
    for base in cls.__mro__:
        for name, it in vars(base).items():
            found.setdefault(name, (base, it))
    return {
        name: it
        for name, (base, it) in sorted(found.items())
        if not name.startswith("_") and is_ours(base) and (is_method(it) or is_property(it))
    }


def is_method(it):
    return inspect.isfunction(it) or isinstance(it, METHOD_KINDS)


def is_property(it):
    return isinstance(it, PROPERTY_KINDS)


def doc_of(cls, name):
    """Return the docstring of a member: its own, or that of what it overrides."""
    written = (vars(base).get(name) for base in own_classes(cls))
    docs = (it.__doc__ for it in written if is_method(it) or is_property(it))
    return inspect.cleandoc(next(filter(None, docs), ""))


def own_doc(cls):
    """Return the docstring of a class; none that a base class or a dataclass has made."""
    text = vars(cls).get("__doc__") or ""
    made = dataclasses.is_dataclass(cls) and text.startswith(f"{cls.__name__}(")
    return "" if made else inspect.cleandoc(text)


def section(text, title):
    """Return the lines of a section, or nothing."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}\n|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def named_in(text, *titles):
    """Return the names that sections such as Parameters explain."""
    lines = (line for title in titles for line in section(text, title).splitlines())
    heads = (line.partition(" : ")[0] for line in lines if line and line[0] not in " \t")
    return {name.strip(" *") for head in heads for name in head.split(",")}


def used_in_examples(text, name):
    examples = doctest.DocTestParser().get_examples(text)
    return any(re.search(rf"\b{re.escape(name)}\b", example.source) for example in examples)


def begins_with_a_sentence(text):
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0]
    return bool(re.match(r"\W*[A-Za-z]", first)) and first.rstrip().endswith((".", ":"))


def faults_of_function(function, text, name, returns=None, shown=False):
    """Say what the docstring of a function or method leaves out."""
    if not text:
        return ["has no docstring"]
    faults = [] if begins_with_a_sentence(text) else ["does not begin with a sentence"]
    signature = inspect.signature(function)
    given = [parameter for parameter in signature.parameters if parameter not in ("self", "cls")]
    silent = [parameter for parameter in given if parameter not in named_in(text, "Parameters")]
    faults += [f"does not explain {parameter}" for parameter in silent]
    returns = returns_something(function) if returns is None else returns
    if returns and not (section(text, "Returns") or section(text, "Yields")):
        faults.append("does not say what it returns")
    if not (shown or used_in_examples(text, name)):
        faults.append("has no example")
    return faults


def returns_something(function):
    return inspect.signature(function).return_annotation not in (None, "None")


def faults_of_member(cls, name, it):
    text = doc_of(cls, name)
    if name in declared(cls) and name in documented_attributes(cls):
        return []
    if is_property(it):
        if not text:
            return ["has no docstring"]
        return [] if begins_with_a_sentence(text) else ["does not begin with a sentence"]
    # Pieces are written without annotations: those of their base class hold.
    written = (vars(base).get(name) for base in own_classes(cls))
    functions = [plain(w) for w in written if is_method(w)]
    typed = next(filter(annotated, functions), functions[0])
    shown = any(used_in_examples(own_doc(base), name) for base in own_classes(cls))
    return faults_of_function(plain(it), text, name, returns_something(typed), shown)


def plain(it):
    return it.__func__ if isinstance(it, METHOD_KINDS) else it


def annotated(function):
    return inspect.signature(function).return_annotation is not inspect.Signature.empty


def documented_attributes(cls):
    """Return the names that a class explains: in its sections, or by docstrings below them."""
    return set().union(*map(explained_in, own_classes(cls)))


@functools.cache
def explained_in(cls):
    found = named_in(own_doc(cls), "Parameters", "Attributes")
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if text and isinstance(statement, ast.AnnAssign):
            found.add(statement.target.id)
    return found


def declared(cls):
    """Return the attributes that a class declares by annotations."""
    return {name for base in own_classes(cls) for name in inspect.get_annotations(base)}


def attributes(cls):
    """Return what a class is made from, and the attributes that it declares."""
    made_here = any(vars(base).keys() & {"__init__", "__new__"} for base in own_classes(cls))
    given = inspect.signature(cls).parameters if made_here else ()
    return sorted({name for name in (*given, *declared(cls)) if not name.startswith("_")})


def faults_of_class(cls):
    text = own_doc(cls)
    if not text:
        return ["has no docstring"]
    faults = [] if begins_with_a_sentence(text) else ["does not begin with a sentence"]
    if issubclass(cls, Enum | Exception):
        return faults
    explained = documented_attributes(cls) | members(cls).keys()
    faults += [f"does not explain {name}" for name in attributes(cls) if name not in explained]
    if not doctest.DocTestParser().get_examples(text):
        faults.append("has no example")
    for name, it in members(cls).items():
        faults += [f".{name} {fault}" for fault in faults_of_member(cls, name, it)]
    return faults


def faults_of(name, it):
    if inspect.ismodule(it):
        return [] if it.__doc__ else ["has no docstring"]
    if inspect.isclass(it):
        return faults_of_class(it)
    return faults_of_function(it, inspect.getdoc(it) or "", name.rpartition(".")[2])


PUBLIC = public_names()


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_described_and_shown(name):
    faults = faults_of(name, PUBLIC[name])
    assert not faults, "\n".join(f"{name} {fault}" for fault in faults)


def test_the_walk_goes_through_all_floors_of_a_class():
    assert {"value", "values_at", "variance", "spelled_out"} <= members(smartcpd.losses.Loss).keys()
    assert {"loss", "with_exposure", "to_pyttb", "sort"} <= members(smartcpd.CPModel).keys()
    assert {"set_params", "components_", "fit"} <= members(smartcpd.SmartCPD).keys()


def test_docstrings_that_leave_something_out_are_found():
    def half(x, y=1) -> int:
        """Return half.

        Parameters
        ----------
        x : int

        Examples
        --------
        >>> double(2)
        """

    found = faults_of_function(half, inspect.getdoc(half), "half")
    assert found == [
        "does not explain y",
        "does not say what it returns",
        "has no example",
    ]
