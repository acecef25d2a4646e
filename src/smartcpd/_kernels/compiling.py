"""Compilation to machine code, kept on disk between processes.

Four things here differ from a plain ``numba.njit(cache=True)``:

* the cache key holds a hash of all sources that machine code is made from, because Numba alone
  notices an edit only in the file of the compiled function and would run a stale loss after an edit
  elsewhere;
* functions made by a factory can be cached, each under a name of its own;
* processes that miss the same function at the same time take turns, so that one compiles it;
* floating-point literals take the precision asked for, because Numba would silently widen
  ``1.0 - x`` to float64 when ``x`` is float32 and halve the speed.
"""

from __future__ import annotations

import hashlib
import sys
import types as pytypes
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import typeof_impl

from smartcpd._kernels.turns import Turn

# Numba warns at every use of functions as arguments, a feature it has shipped since 2019.
warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)

# NaN and infinity keep their meaning (they are how divergence is noticed), so no "nnan" or "ninf".
FASTMATH = {"contract", "nsz", "arcp", "reassoc", "afn"}

NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options for functions that only compiled functions call."""

SOURCES = ("_kernels", "constraints", "losses", "mirrors", "steps")
"""Packages that hold every function that is compiled, and every constant that those use."""

_announced = False


@cache
def package_hash() -> str:
    """Hash of what machine code is made from, the part of the cache key that Numba lacks."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in SOURCES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _PackageCache(FunctionCache):
    """Numba's on-disk cache, keyed by signature, processor and the sources of the package."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.turn = Turn(Path(self.cache_path) / f"{self._impl.filename_base}.lock")

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), package_hash())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None:
            _announce_once()
            self.turn.wait()
            found = super().load_overload(sig, target_context)
        return found


class Block(types.WrapperAddressProtocol):
    """A compiled function that compiled loops accept as an argument of a fixed type."""

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        compiled = dispatcher.get_compile_result(signature)
        self._dispatcher = dispatcher
        self._signature = signature
        self._address = compiled.library.get_pointer_to_function(
            compiled.fndesc.llvm_cfunc_wrapper_name
        )
        self.type = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return self._signature

    def __call__(self, *args: Any) -> Any:
        return self._dispatcher(*args)


@typeof_impl.register(Block)
def _type_of_block(block: Block, context: Any) -> Any:
    """Return the type of a block, made once: Numba would make it anew at every call of a loop,
    which takes longer than some loops.
    """
    return block.type


def _announce_once() -> None:
    """Say that the first use on a machine compiles, which takes seconds and looks like a hang."""
    global _announced
    if not _announced:
        _announced = True
        print(
            "smartcpd: compiling for this machine (once; later runs start at once) ...",
            file=sys.stderr,
            flush=True,
        )


def in_precision(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """A copy of ``function`` whose float literals and globals have the precision ``dtype``."""
    narrow = np.dtype(dtype) != np.float64

    def cast(value: Any) -> Any:
        return np.dtype(dtype).type(value) if narrow and type(value) is float else value

    code = function.__code__
    code = code.replace(co_consts=tuple(cast(c) for c in code.co_consts))
    names = {name: cast(value) for name, value in function.__globals__.items()}
    cells = tuple(pytypes.CellType(cast(c.cell_contents)) for c in function.__closure__ or ())
    defaults = tuple(cast(value) for value in function.__defaults__ or ())
    return pytypes.FunctionType(code, names, function.__name__, defaults, cells)


def inline(function: Callable[..., Any], dtype: Any = np.float64) -> Any:
    """A scalar function to be called from other compiled functions (it gets inlined there).

    Python must not call it: the code that would let Python and C do so is left out, since it takes
    as long to compile as the function itself.
    """
    return numba.njit(
        in_precision(function, dtype), error_model="numpy", fastmath=FASTMATH, **NO_WRAPPERS
    )


def _is_hashed(function: Callable[..., Any]) -> bool:
    """Whether a function is among the hashed sources; others are not kept on disk."""
    package, _, rest = function.__module__.partition(".")
    return package != "smartcpd" or rest.partition(".")[0] in SOURCES


def compile_kernel(
    function: Callable[..., Any],
    signature: Any,
    name: str,
    *,
    on_disk: bool = True,
    parallel: bool = False,
) -> Any:
    """Compile ``function`` for ``signature``, from the disk where an earlier process left it.

    ``name`` must be unique within the file of ``function`` and never change its meaning while the
    sources stay the same: it is what the cached machine code is found by.
    """
    assert _is_hashed(function), f"{function} is compiled, and its module is not part of the key"
    function.__qualname__ = name
    dispatcher: Any = numba.njit(
        function, error_model="numpy", fastmath=FASTMATH, nogil=True, parallel=parallel
    )
    if not on_disk:
        dispatcher.compile(signature)
    else:
        dispatcher._cache = kept = _PackageCache(function)
        try:
            dispatcher.compile(signature)
        finally:
            kept.turn.end()
    dispatcher.disable_compile()
    return dispatcher
