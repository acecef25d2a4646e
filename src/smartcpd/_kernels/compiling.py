"""Compilation to machine code, kept on disk between processes.

Four things here differ from a plain ``numba.njit(cache=True)``:

* machine code is found by the content of all sources that it was made from (`KeptCode`);
* functions made by a factory can be cached, each under a name of its own;
* processes that miss the same function at the same time take turns, so that one compiles it;
* floating-point literals take the precision asked for, because Numba would silently widen
  ``1.0 - x`` to float64 when ``x`` is float32 and halve the speed.
"""

from __future__ import annotations

import time
import types as pytypes
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import typeof_impl

from smartcpd._kernels.kept_code import KeptCode, is_from_sources
from smartcpd._kernels.linked import LinkedCompiler
from smartcpd._kernels.notices import compilation

# Numba warns at every use of functions as arguments, a feature it has shipped since 2019.
warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)

# NaN and infinity keep their meaning (they are how divergence is noticed), so no "nnan" or "ninf".
FASTMATH = {"contract", "nsz", "arcp", "reassoc", "afn"}

exact_subroutine = partial(
    numba.njit,
    error_model="numpy",
    no_cfunc_wrapper=True,
    no_cpython_wrapper=True,
    pipeline_class=LinkedCompiler,
)
"""Marks a function that compiled functions call, and they alone: neither Python nor C can."""
subroutine = partial(exact_subroutine, fastmath=FASTMATH)
"""Marks one whose floating-point operations may be done in another order."""


def variant_subroutine(variant: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a subroutine that a factory makes anew for each variant, such as an order.

    Machine code that was kept on disk is linked by names, and two variants of one name would be
    taken for each other when both are loaded by one process.
    """

    def mark(function: Callable[..., Any]) -> Any:
        function.__qualname__ = f"{function.__qualname__}.{variant}"
        return subroutine(function)

    return mark


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
    """A scalar function to be called from other compiled functions (it gets inlined there)."""
    return subroutine(in_precision(function, dtype))


def inline_formula(function: Callable[..., Any], dtype: Any = np.float64) -> Any:
    """A scalar formula that is inlined however long it is: a loop around a call, such as one whose
    formula has an exponential of a logarithm, would not be vectorised.
    """
    return subroutine(in_precision(function, dtype), no_cpython_wrapper=True, forceinline=True)


def compile_kernel(
    function: Callable[..., Any],
    signature: Any,
    name: str,
    *,
    on_disk: bool = True,
    parallel: bool = False,
    as_argument: bool = False,
) -> Any:
    """Compile ``function`` for ``signature``, from the disk where an earlier process left it.

    ``name`` must be unique within the file of ``function`` and never change its meaning while the
    sources stay the same: it is what the cached machine code is found by. ``as_argument`` says
    that compiled loops take it as an argument.
    """
    function.__qualname__ = name
    dispatcher: Any = numba.njit(
        function,
        error_model="numpy",
        fastmath=FASTMATH,
        nogil=True,
        parallel=parallel,
        no_cfunc_wrapper=not as_argument,
    )
    if not on_disk:
        with compilation.timed():
            dispatcher.compile(signature)
    else:
        assert is_from_sources(function), f"{function} needs a module that is not part of the key"
        dispatcher._cache = kept = KeptCode(function, compilation.announce)
        began = time.perf_counter()
        try:
            with compilation.timed():
                dispatcher.compile(signature)
        finally:
            kept.turn.end()
        if kept.missed:
            compilation.took(name, time.perf_counter() - began)
    dispatcher.disable_compile()
    return dispatcher
