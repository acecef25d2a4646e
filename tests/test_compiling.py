"""Compiled code: its precision, and a cache that is kept as long as it is right, and no longer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import types

import smartcpd
from smartcpd import losses
from smartcpd._kernels import compiling
from smartcpd._kernels.compiling import in_precision, inline

PACKAGE = Path(smartcpd.__file__).resolve().parent
OFFSET = 0.1
COUNT = 3
NOTICE = "compiling for this machine"


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
        assert inline(function)(0.7) == pytest.approx(function(0.7), rel=1e-15)

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


def test_the_parts_of_the_cache_key(monkeypatch):
    class Codegen:
        def magic_tuple(self):
            return ("processor",)

    cache = compiling._PackageCache(with_literal)
    keys = [cache._index_key(signature, Codegen()) for signature in ("a", "a", "b")]
    monkeypatch.setattr(compiling, "package_hash", lambda: "other sources")
    keys.append(cache._index_key("a", Codegen()))
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


@pytest.fixture
def sources(tmp_path):
    """A copy of the package, which nobody else edits."""
    copy = tmp_path / "sources"
    shutil.copytree(PACKAGE, copy / "smartcpd", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run(script, sources):
    """A new process; what it printed on both streams."""
    cache = sources.parent / "cache"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(sources)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout, done.stderr


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
print(loss.value_block("float64")(np.array([3.0]), np.array([1.0]), loss.params))
"""

CUSTOM = """
import numpy as np
from smartcpd import losses
for scale in (1.0, 2.0):
    loss = losses.custom(lambda x, m: scale * (x - m) ** 2, lambda x, m: 2.0 * scale * (m - x))
    print(loss.value_block("float64")(np.array([3.0]), np.array([1.0]), loss.params))
"""


def test_a_second_process_does_not_compile(sources):
    first, second = (run(FIT, sources) for _ in range(2))
    assert first[1].count(NOTICE) == 1
    assert NOTICE not in second[1]
    assert first[0] == second[0]


@pytest.mark.parametrize(
    "edited", ["losses/gaussian.py", "_kernels/lanes.py", "_common/stacked.py"]
)
def test_an_edit_of_what_is_compiled_recompiles(edited, sources):
    assert NOTICE in run(BLOCK, sources)[1]
    path = sources / "smartcpd" / edited
    path.write_text(path.read_text().replace("return 0.5 *", "return 5.0 *") + "\n# edited\n")
    value, notice = run(BLOCK, sources)
    assert (NOTICE in notice) == (edited != "_common/stacked.py")
    # The loss of the machine code is the loss of the sources.
    assert float(value) == (20.0 if "gaussian" in edited else 2.0)


def test_a_custom_loss_is_never_kept_on_disk(sources):
    assert run(CUSTOM, sources)[0].split() == ["4.0", "8.0"]
    assert not list((sources.parent / "cache").rglob("*.nbi"))
