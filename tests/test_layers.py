"""The ground plan: a floor imports from those below it, and nothing hides in a cycle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import smartcpd
from smartcpd._common.doors import doors

ROOT = Path(smartcpd.__file__).parent
REPOSITORY = ROOT.parent.parent
FLOORS = (
    ("_common", "errors"),
    ("_kernels", "constraints", "losses", "mirrors", "steps"),
    ("_data", "partitions", "sampling"),
    ("_problem",),
    ("_objectives",),
    ("_methods",),
    ("_strategies",),
    ("distributed", "solvers"),
    ("_fitting", "datasets"),
    ("_inference", "metrics", "quality"),
    ("plots", "report"),
    ("_app", "_estimator", "_verbs"),
)
"""From the ground up; CONTRIBUTING draws the same."""
LARGEST_CYCLE = 3


def named(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {named(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """The package's own modules that a file imports, wherever the import stands, and the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else node.module for name in whole]
        else:
            continue
        yield from ((name, node.lineno) for name in names if name in modules())


@cache
def graph() -> dict[str, set[str]]:
    return {
        module: {name for name, _ in imported(path)} - {module}
        for module, path in modules().items()
    }


def floor(module: str) -> int:
    package = module.split(".")[1] if "." in module else ""
    for number, packages in enumerate(FLOORS):
        if package in packages:
            return number
    return len(FLOORS)  # the package itself and __main__ stand on top of the house


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that can all be reached from each other."""
    reach: dict[str, set[str]] = {}

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        left = [start]
        while left:
            for name in edges[left.pop()] - found:
                found.add(name)
                left.append(name)
        return found

    for module in edges:
        reach[module] = reached(module)
    loops = {frozenset(n for n in reach[m] if m in reach[n]) for m in edges if m in reach[m]}
    return [set(loop) for loop in loops]


def test_every_package_has_a_floor():
    packages = {module.split(".")[1] for module in modules() if "." in module} - {"__main__"}
    assert packages == {name for names in FLOORS for name in names}


@pytest.mark.parametrize("module", list(modules()))
def test_imports_go_down(module):
    above = [
        f"{module}:{line} imports {name}"
        for name, line in imported(modules()[module])
        if floor(name) > floor(module)
    ]
    assert not above


def test_cycles_are_small():
    assert max(map(len, cycles(graph())), default=0) <= LARGEST_CYCLE


def test_a_cycle_would_be_found():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert cycles(edges) == [{"a", "b", "c"}]


def test_imports_inside_functions_are_those_that_a_start_should_not_wait_for():
    """They are allowed in modules that the command line loads before it knows what to do."""
    inside = {}
    for module, path in modules().items():
        tree = ast.parse(path.read_text())
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        found = {
            node.module
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("smartcpd")
        }
        if found:
            inside[module] = found
    patient = {
        "smartcpd",  # scikit-learn comes with `SmartCPD`, DuckDB with `from_table`
        "smartcpd._fitting.fit",  # Dask comes with ``client=``
        "smartcpd.partitions.parquet",  # DuckDB comes with the first part that is read
        "smartcpd._app.run_folder.folder",  # what makes pages comes with the first page
    }
    late = {m for m in inside if not m.startswith("smartcpd._app.cli") and m not in patient}
    assert not late, {m: inside[m] for m in late}


def test_doors_lead_somewhere():
    """The verbs of models that modules above perform, each in a function of its name."""
    used = set()
    for path in modules().values():
        used |= set(re.findall(r"\bdoors\.([a-z_]+)\(", path.read_text()))
    assert used == set(doors.leads)
    for verb, module in doors.leads.items():
        assert callable(getattr(import_module(module), verb))


def test_the_root_is_short_and_all_of_it_is_there():
    assert len(smartcpd.__all__) <= 21
    for name in [*smartcpd.__all__, *smartcpd.FURTHER]:
        assert getattr(smartcpd, name) is not None
    public = {path.stem for path in ROOT.iterdir() if not path.name.startswith(("_", "."))}
    assert public - {"py"} <= {*smartcpd.__all__, *smartcpd.FURTHER}


def test_contributing_names_files_that_exist():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:src|tests|benchmarks|docs|examples)/[\w./-]+)`", text)
    assert len(paths) > 20
    missing = [path for path in paths if not (REPOSITORY / path).exists()]
    assert not missing


STORAGES = {
    "Dense",
    "DenseStorage",
    "HeldParts",
    "PartitionedTensor",
    "ShardedTensor",
    "SparseStorage",
    "SparseTensor",
    "TiledArray",
}
TELL_STORAGES_APART = {
    "smartcpd._methods.tile_descents",
    "smartcpd._strategies.partitioned",
    "smartcpd.distributed.cluster",
    "smartcpd.sampling.cells",
}
"""The modules outside the data floor that may, to refuse what they are not made for: what users
pass, or a storage that a solver cannot read."""


def test_storages_answer_for_themselves():
    """What differs between them is a method of theirs, or dispatches on them."""
    found = set()
    for module, path in modules().items():
        if module.split(".")[1:2] in (["_data"], ["partitions"]):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                named_kinds = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                if named_kinds & STORAGES:
                    found.add(module)
    assert found <= TELL_STORAGES_APART
