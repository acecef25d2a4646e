"""The types of what compiled functions receive, as annotations of their parameters.

``def terms(A: Matrix, offsets: Integers)`` tells a reader and Numba alike what the function takes.
The annotations from `Real` on leave the precision open: a function is compiled for the one that its
caller asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numba import from_dtype, types

from smartcpd._kernels.compiling import Block, compile_kernel


def _block(*arguments: Any, result: Any = types.void) -> Callable[[Any], Any]:
    """Return the function that makes a block's type from the precision of its arguments."""
    return lambda real: types.FunctionType(result(*(numba_type(a, real) for a in arguments)))


Flag = Annotated[Any, types.boolean]
Flags = Annotated[Any, types.boolean[::1]]
Integer = Annotated[Any, types.int64]
Integers = Annotated[Any, types.int64[::1]]
IntegerMatrix = Annotated[Any, types.int64[:, ::1]]
IntegerStack = Annotated[Any, types.int64[:, :, ::1]]
Rows = Annotated[Any, types.uint32[:, ::1]]
"""Rows of cells in the stacked factors."""
Places = Annotated[Any, types.uint32[::1]]
"""Numbers of rows in a table."""
Double = Annotated[Any, types.float64]
Doubles = Annotated[Any, types.float64[::1]]
DoubleMatrix = Annotated[Any, types.float64[:, ::1]]
DoubleStack = Annotated[Any, types.float64[:, :, ::1]]
"""These four are float64 whatever the precision of the kernel, as sums of many terms must be."""

Real = Annotated[Any, lambda real: real]
Vector = Annotated[Any, lambda real: real[::1]]
Matrix = Annotated[Any, lambda real: real[:, ::1]]
Stack = Annotated[Any, lambda real: real[:, :, ::1]]
Params = Annotated[Any, lambda real: types.UniTuple(real, 2)]
"""The parameters of a piece: two numbers, whatever the piece, for one signature to fit all."""

Entrywise = Annotated[Any, _block(Vector, Vector, Params, Vector)]
"""(data, model, p, out): a loss's derivative, cell by cell."""
Total = Annotated[Any, _block(Vector, Vector, Params, result=types.float64)]
"""(data, model, p) -> sum: a loss's value over a block of cells."""
EventArrays = tuple[Rows, Vector, Vector, Total, Entrywise, Entrywise]
"""Rows of events in the stacked factors, values and weights; what events add to a loss, in sum and
one by one, with its derivative."""
PairArrays = tuple[Rows, Rows, Integers, Places, Vector, Double]
"""Outer and inner parts of pairs, where the events of each outer part begin, the inner part of each
event, the values, and what the model is above in logs."""
ZeroParts = tuple[Total, Entrywise]
"""The loss of cells without an event, with its derivative."""
PassPlan = tuple[Integer, Double, Double, Double]
"""The number of passes, the events that smooth each of them, the mass that lifts entries at first,
and the gain that ends them."""
Transform = Annotated[Any, _block(Vector, Params, Vector)]
"""(a, p, out): to the dual of a mirror map, or back."""
Move = Annotated[Any, _block(Vector, Vector, Vector, Params)]
"""(a, g, gamma, p): a mirror step against the gradient g, in place on a."""
Scale = Annotated[Any, _block(Vector, Vector, Vector, Vector, Real, Params, Vector)]
"""(g, c, d, s, k, p, gamma): a step rule's scaling; s is its state, updated in place."""
Project = Annotated[Any, _block(Matrix, Matrix, Transform, Transform, Params, Params)]
"""(Z, Gamma, to_dual, to_primal, mirror p, p): a constraint, in place on Z."""
Gather = Annotated[Any, _block(Integers, IntegerMatrix, Integer, Integer, Matrix)]
"""(handle, fibers, mode, first row, out): rows of the sampled fibers, as floats."""
Unpack = Annotated[Any, _block(Integers, Integers, Integers, Integer, Rows, Vector)]
"""(handle, offsets, positions, start, rows, x): some events, as `events` reads them."""

LookUp = Annotated[Any, _block(DoubleMatrix, Integer, Integers, Double, Rows, result=types.int64)]
"""(A, rank, offsets, threshold, cells) -> number: which cells have large model values."""


def numba_type(word: Any, real: Any, length: int = 1) -> Any:
    """Return Numba's type for an annotation; ``tuple[word, ...]`` has ``length`` entries."""
    if get_origin(word) is tuple:
        entries = get_args(word)
        entries = entries[:1] * length if entries[-1] is Ellipsis else entries
        return types.Tuple([numba_type(entry, real) for entry in entries])
    (kind,) = word.__metadata__
    return kind if isinstance(kind, types.Type) else kind(real)


def compile_annotated(
    function: Callable[..., Any],
    *variant: Any,
    dtype: str = "float64",
    parallel: bool = False,
    length: int = 1,
) -> Any:
    """Compile a function for the types that its parameters are annotated with.

    ``variant`` tells apart functions of one name that a factory has made. ``length`` is that of
    tuples whose annotation leaves it open.
    """
    real = from_dtype(np.dtype(dtype))
    words = get_type_hints(function, include_extras=True)
    result = numba_type(words.pop("return"), real) if "return" in words else types.void
    signature = result(*(numba_type(word, real, length) for word in words.values()))
    threads = "parallel" if parallel else "serial"
    name = ".".join(map(str, (function.__name__, *variant, dtype, length, threads)))
    return compile_kernel(function, signature, name, parallel=parallel)


def compile_block(
    kind: Any, function: Callable[..., Any], name: str, dtype: str, on_disk: bool = True
) -> Block:
    """Compile a function as a block of some kind, such as `Gather`."""
    signature = numba_type(kind, from_dtype(np.dtype(dtype))).signature
    dispatcher = compile_kernel(
        function, signature, f"{name}.{dtype}", on_disk=on_disk, as_argument=True
    )
    return Block(dispatcher, signature)
