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
from smartcpd import losses
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


LOOKED_AT = (ast.Import, ast.ImportFrom, ast.Call, ast.Compare, ast.MatchValue)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def written(module: str) -> list[tuple[ast.AST, bool]]:
    """What a module imports, calls and compares, wherever it stands, and whether that is inside of
    a function.
    """
    found: list[tuple[ast.AST, bool]] = []
    left: list[tuple[ast.AST, bool]] = [(ast.parse(modules()[module].read_text()), False)]
    while left:
        node, inside = left.pop()
        if isinstance(node, LOOKED_AT):
            found.append((node, inside))
        inside = inside or isinstance(node, FUNCTIONS)
        left.extend((child, inside) for child in ast.iter_child_nodes(node))
    return found


def imported(module: str, only_inside: bool = False) -> Iterator[tuple[str, int]]:
    """The package's own modules that a module imports, in functions too or only there, and the
    line.
    """
    for node, inside in written(module):
        if only_inside and not inside:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else str(node.module) for name in whole]
        else:
            continue
        yield from ((name, node.lineno) for name in names if name in modules())


@cache
def graph() -> dict[str, set[str]]:
    return {module: {name for name, _ in imported(module)} - {module} for module in modules()}


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
        for name, line in imported(module)
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
    found = {m: {name for name, _ in imported(m, only_inside=True)} for m in modules()}
    inside = {module: names for module, names in found.items() if names}
    patient = {
        "smartcpd",  # what fits data comes with `SmartCPD`, DuckDB with `from_table`
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
MADE_FOR_ONE_STORAGE = {"DenseObjective", "DenseSlices", "SparseObjective", "SparseSlices"}
TELL_STORAGES_APART = {
    "smartcpd._methods.tile_descents",
    "smartcpd._strategies.partitioned",
    "smartcpd.distributed.cluster",
    "smartcpd.sampling.cells",
}
"""The modules outside the data floor that may, to refuse what they are not made for: what users
pass, or a storage that a solver cannot read."""
MOST_STORAGE_SWITCHES = 25
TELL_LOSSES_APART = {
    "smartcpd._app.paper.experiments.real",  # the paper gives other settings for counts
    "smartcpd._app.paper.peer_lines",  # other packages have methods for counts alone
}
MOST_LOSS_SWITCHES = 3


def nodes(*outside: str) -> Iterator[tuple[str, ast.AST]]:
    """What is called and compared in modules outside some packages, with the module's name."""
    for module in modules():
        if module.split(".")[1:2] not in [[package] for package in outside]:
            yield from ((module, node) for node, _ in written(module))


def asks_for_type(node: ast.AST, kinds: set[str]) -> bool:
    """Whether code asks if something is of one of the kinds."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in (
        "isinstance",
        "issubclass",
    ):
        return False
    return bool({getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node.args[1])} & kinds)


def compares(node: ast.AST, texts: set[str]) -> bool:
    """Whether code compares something with one of the texts."""
    if not isinstance(node, ast.Compare | ast.MatchValue):
        return False
    return bool({n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & texts)


def test_storages_answer_for_themselves():
    """What differs between them is a method of theirs, or dispatches on them."""
    elsewhere = list(nodes("_data", "partitions"))
    of_type = [module for module, node in elsewhere if asks_for_type(node, STORAGES)]
    assert set(of_type) <= TELL_STORAGES_APART
    hidden = [module for module, node in elsewhere if asks_for_type(node, MADE_FOR_ONE_STORAGE)]
    dense = [
        module
        for module, node in elsewhere
        if compares(node, {"none"}) and ".absent" in ast.unparse(node)
    ]
    assert len(of_type) + len(hidden) + len(dense) <= MOST_STORAGE_SWITCHES


def test_losses_answer_for_themselves():
    """What differs between distributions stands in the file of the loss."""
    names = set(losses.names())  # which imports all of them
    kinds = {kind.__name__ for kind in subclasses(losses.Loss) if kind.__module__ in modules()}
    assert min(len(names), len(kinds)) > 10
    by_type = [m for m, node in nodes("losses") if asks_for_type(node, kinds - {"CustomLoss"})]
    by_name = [m for m, node in nodes("losses") if compares(node, names)]
    assert not by_type
    assert set(by_name) <= TELL_LOSSES_APART
    assert len(by_name) <= MOST_LOSS_SWITCHES


def subclasses(kind: type) -> Iterator[type]:
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_a_switch_would_be_found():
    asks = ast.parse("isinstance(loss, losses.Poisson | Gamma)").body[0].value
    assert asks_for_type(asks, {"Poisson"})
    assert not asks_for_type(asks, {"Gaussian"})
    assert compares(ast.parse("loss.name in ('poisson', 'gamma')").body[0].value, {"gamma"})
