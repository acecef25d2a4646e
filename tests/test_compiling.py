"""Compiled code: its precision, and a cache that is kept as long as it is right, and no longer."""

import ast
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import numba
import numpy as np
import pytest
from llvmlite.binding import ExecutionEngine
from numba import types

import smartcpd
from smartcpd import losses
from smartcpd._kernels import ahead, kept_code, turns
from smartcpd._kernels.compiling import compile_kernel, in_precision, inline
from smartcpd._kernels.notices import compilation, working_clock
from smartcpd._kernels.turns import Turn
from smartcpd._kernels.uninterrupted import uninterrupted
from smartcpd._methods.mixture_bursts import needed_kernels
from smartcpd._strategies.dense import NEEDED_LATER

PACKAGE = Path(smartcpd.__file__).resolve().parent
OFFSET = 0.1
COUNT = 3
NOTICE = "compiling what this kind of problem needs"


def with_literal(x):
    return 0.1 * x


def with_global(x):
    return OFFSET + x


def make_closure():
    inner = 0.1

    def with_closure(x):
        return inner - x

    return with_closure


@pytest.mark.parametrize("function", [with_literal, with_global, make_closure()])
class TestInPrecision:
    def test_single_precision_stays_single(self, function):
        narrow = in_precision(function, np.float32)
        x = np.float32(0.7)
        assert isinstance(narrow(x), np.float32)
        compiled = inline(function, np.float32)
        compiled.compile((types.float32,))
        assert compiled.nopython_signatures[0].return_type == types.float32

    def test_double_precision_is_left_alone(self, function):
        assert in_precision(function, np.float64)(0.7) == function(0.7)
        compiled = inline(function)
        called = numba.njit(lambda x: compiled(x))
        assert called(0.7) == pytest.approx(function(0.7), rel=1e-15)

    def test_the_original_is_not_changed(self, function):
        before = function(0.7)
        in_precision(function, np.float32)(np.float32(0.7))
        assert function(0.7) == before
        assert type(OFFSET) is float


def test_globals_keep_their_types_where_they_are_no_floats():
    narrow = in_precision(with_global, np.float32)
    assert narrow.__globals__["COUNT"] is COUNT
    assert narrow.__globals__["np"] is np
    assert type(narrow.__globals__["OFFSET"]) is np.float32


def test_the_type_of_a_block_is_made_once():
    # At every call of a loop Numba asks for the types of its arguments.
    block = losses.get("poisson").derivative_block("float64")
    assert numba.typeof(block) is numba.typeof(block)


class TestKey:
    def test_holds_the_signature_and_the_processor(self):
        class Codegen:
            def __init__(self, name):
                self.name = name

            def magic_tuple(self):
                return (self.name,)

        function = losses.get("poisson").value_block("float64")._dispatcher.py_func
        kept = kept_code.KeptCode(function, lambda: None)
        keys = [kept._index_key(s, Codegen(c)) for s, c in ("aa", "aa", "ab", "ba")]
        assert keys[0] == keys[1]
        assert len(set(keys)) == 3

    def test_imports_are_those_of_the_syntax_tree(self):
        for package in kept_code.SOURCES:
            for path in (PACKAGE / package).rglob("*.py"):
                module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
                assert kept_code._imports(module.removesuffix(".__init__")) == imported(path)

    def test_code_from_elsewhere_is_not_kept(self):
        inner = inline(with_literal)
        assert not kept_code.is_from_sources(with_literal)
        assert not kept_code.is_from_sources(lambda x: inner(x))


def imported(path):
    """The modules among the compiled sources that a file imports, by its syntax tree."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("smartcpd") for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("smartcpd."):
            package = node.module.removeprefix("smartcpd.")
            for name in node.names:
                inner = f"{package}.{name.name}"
                found.add(inner if kept_code._path(inner) else package)
    return {name for name in found if kept_code._path(name)}


def test_where_nothing_can_be_written_code_is_kept_for_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(kept_code.config, "CACHE_DIR", str(tmp_path / "file" / "folder"))
    own = kept_code.folder.__wrapped__()
    assert own.is_dir()
    assert tmp_path not in own.parents


@pytest.mark.slow
def test_a_file_that_was_cut_short_is_compiled_again(sources):
    assert run(BLOCK, sources)[0][0].split() == ["2.0", "1"]
    for path in (sources.parent / "cache").rglob("*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:20])
    assert [run(BLOCK, sources)[0][0].split()[1] for _ in range(2)] == ["1", "0"]


@pytest.fixture
def sources(tmp_path):
    """A copy of the package, which nobody else edits."""
    copy = tmp_path / "sources"
    shutil.copytree(PACKAGE, copy / "smartcpd", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run(script, sources, times=1):
    """New processes side by side; what each printed on both streams."""
    environment = os.environ | {"PYTHONPATH": str(sources)}
    if sources != PACKAGE.parent:
        environment["NUMBA_CACHE_DIR"] = str(sources.parent / "cache")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(times)
    ]
    printed = [process.communicate(timeout=300) for process in processes]
    assert not any(process.returncode for process in processes), printed
    return printed


FIT = """
import numpy as np
from smartcpd import decompose
X = np.random.default_rng(0).poisson(2.0, (5, 4, 3))
print(decompose(X, 2, "poisson", max_epochs=2, random_state=0, n_threads=1).loss(X))
"""

BLOCK = """
import numpy as np
from smartcpd import losses
loss = losses.get("gaussian")
block = loss.value_block("float64")
print(block(np.array([3.0]), np.array([1.0]), loss.params))
print(len(block._dispatcher.stats.cache_misses))
"""

CUSTOM = """
import numpy as np
from smartcpd import losses
for scale in (1.0, 2.0):
    loss = losses.custom(lambda x, m: scale * (x - m) ** 2, lambda x, m: 2.0 * scale * (m - x))
    print(loss.value_block("float64")(np.array([3.0]), np.array([1.0]), loss.params))
"""


AHEAD = """
import time
from smartcpd._kernels import ahead, row_sums
from smartcpd._kernels.kept_code import is_kept
assert not is_kept(row_sums.add_cells, "add_cells")
ahead.compile_ahead("row_sums.add_cells")
until = time.monotonic() + 100
while not is_kept(row_sums.add_cells, "add_cells") and time.monotonic() < until:
    time.sleep(0.05)
kernel = row_sums.compiled_add_cells()
print(len(kernel.stats.cache_misses))
"""


@pytest.mark.slow
def test_what_another_process_compiled_ahead_is_found(sources):
    assert run(AHEAD, sources)[0][0].split() == ["0"]


@pytest.mark.parametrize("loss", ["poisson", "bernoulli-odds"])
def test_what_a_search_needs_later_can_be_named(loss):
    for kernel in (*NEEDED_LATER, *needed_kernels(losses.get(loss), 3)):
        ahead._is_kept(kernel)
        module, _, function = kernel.partition(":")[0].partition(".")
        module = importlib.import_module(f"smartcpd._kernels.{module}")
        assert callable(getattr(module, f"compiled_{function}"))


@pytest.mark.slow
def test_a_second_process_does_not_compile():
    # The first may find on disk what other tests have left there.
    [first], [second] = (run(FIT, PACKAGE.parent) for _ in range(2))
    assert NOTICE not in second[1]
    assert first[0] == second[0]


@pytest.mark.slow
def test_an_edit_of_what_is_compiled_recompiles(sources):
    def edit(name):
        path = sources / "smartcpd" / name
        path.write_text(path.read_text().replace("return 0.5 *", "return 5.0 *") + "\n# edited\n")
        [(out, notice)] = run(BLOCK, sources)
        value, misses = map(float, out.split())
        assert (NOTICE in notice) == (misses == 1)
        return value, misses

    # Two processes at the same time: one compiles, the other waits for it.
    printed = run(BLOCK, sources, times=2)
    assert sorted(out.split() for out, _ in printed) == [["2.0", "0"], ["2.0", "1"]]
    assert all(notice.count(NOTICE) <= 1 for _, notice in printed)
    assert not list((sources.parent / "cache").rglob("*.lock"))
    # The loss of the machine code is the loss of the sources.
    assert edit("_common/stacked.py") == (2.0, 0)
    assert edit("_kernels/lanes.py") == (2.0, 0)
    assert edit("_kernels/kinds.py") == (2.0, 1)
    assert edit("losses/gaussian.py") == (20.0, 1)


@pytest.mark.slow
def test_a_custom_loss_is_never_kept_on_disk(sources):
    assert run(CUSTOM, sources)[0][0].split() == ["4.0", "8.0"]
    assert not list((sources.parent / "cache").rglob("*.nbi"))


class TestTurns:
    def test_the_second_waits_for_the_first(self, tmp_path):
        first, second = (Turn(tmp_path / "folder" / "lock") for _ in range(2))
        first.wait()
        waiting = Thread(target=second.wait)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        first.end()
        waiting.join(10)
        assert not waiting.is_alive()
        second.end()
        assert not list((tmp_path / "folder").iterdir())

    def test_nobody_waits_for_ever(self, tmp_path, monkeypatch):
        monkeypatch.setattr(turns, "PATIENCE", 0.1)
        stopped, second = (Turn(tmp_path / "lock") for _ in range(2))
        stopped.wait()
        second.wait()
        second.end()
        stopped.end()

    def test_a_folder_that_cannot_be_is_no_error(self, tmp_path):
        (tmp_path / "file").touch()
        turn = Turn(tmp_path / "file" / "lock")
        turn.wait()
        turn.end()


def test_a_clock_stands_still_while_something_is_compiled():
    began, at = time.perf_counter(), working_clock()
    with compilation.timed(), compilation.timed():
        time.sleep(0.05)
        assert working_clock() - at <= time.perf_counter() - began - 0.05
    assert 0 <= working_clock() - at <= time.perf_counter() - began - 0.05


class TestUninterrupted:
    @pytest.fixture(autouse=True)
    def interrupts(self):
        """A shell may have started the tests in the background, where they are ignored."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    def test_an_interrupt_waits_for_the_end(self):
        done = []

        def work():
            with uninterrupted():
                with uninterrupted():
                    signal.raise_signal(signal.SIGINT)
                done.append(True)

        with pytest.raises(KeyboardInterrupt):
            work()
        assert done
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_what_fails_inside_fails_outside(self):
        with pytest.raises(ZeroDivisionError), uninterrupted():
            1 / 0  # noqa: B018
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_an_interrupt_while_llvm_looks_for_code_is_not_lost(self, monkeypatch):
        """It was, and the process ended with a segmentation fault."""
        real = ExecutionEngine._find_module_ptr

        def interrupted(self, pointer):
            signal.raise_signal(signal.SIGINT)
            return real(self, pointer)

        monkeypatch.setattr(ExecutionEngine, "_find_module_ptr", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compile_kernel(lambda x: x + 1.0, (types.float64,), "plus_one", on_disk=False)
        monkeypatch.undo()
        plus = compile_kernel(lambda x: x + 2.0, (types.float64,), "plus_two", on_disk=False)
        assert plus(1.0) == 3.0
