"""Several numbers at once: eight, or as many as a cache line has.

The loops over nonzeros spend their time on short rows, one number a component. Compilers do not
vectorise loops that short; values of this type are vectors to begin with. Arrays read by them have
rows padded with zeros to a multiple of their number.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import PrimitiveModel
from numba.extending import intrinsic, overload, register_model

from smartcpd._kernels.compiling import exact_subroutine

LANES = 8
CACHE_LINE = 64
_FLAGS = ("contract", "nsz", "arcp", "reassoc", "afn")
_INDEX = ir.IntType(32)


def padded(A: np.ndarray, dtype: str = "float64", lanes: int = LANES) -> np.ndarray:
    """A copy of A with columns of zeros added, up to a multiple of the lanes.

    It starts at a cache line, since lanes that straddle two take twice as long.
    """
    width = -(-A.shape[1] // lanes) * lanes
    n_bytes = A.shape[0] * width * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + CACHE_LINE, np.uint8)
    first = -buffer.__array_interface__["data"][0] % CACHE_LINE
    out = buffer[first : first + n_bytes].view(dtype).reshape(A.shape[0], width)
    out[:, : A.shape[1]] = A
    return out


@exact_subroutine
def lines(n_rows, width, like):
    """Room for a matrix in the precision of another array, which starts at a cache line, too."""
    buffer = np.empty(n_rows * width + CACHE_LINE // like.itemsize, like.dtype)
    first = (-buffer.ctypes.data % CACHE_LINE) // like.itemsize
    return buffer[first : first + n_rows * width].reshape((n_rows, width))


def lanes_of_a_line(dtype: Any) -> int:
    """Number of lanes that a cache line has in some precision."""
    return CACHE_LINE // np.dtype(str(dtype)).itemsize


class LanesType(types.Type):
    """Some floating-point numbers in a register."""

    def __init__(self, dtype: Any, count: int = LANES) -> None:
        self.dtype = dtype
        self.count = count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(LanesType)
class _LanesModel(PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        item = ir.DoubleType() if fe_type.dtype == types.float64 else ir.FloatType()
        super().__init__(dmm, fe_type, ir.VectorType(item, fe_type.count))


def _loading(array: Any, row: Any, column: Any, count: int) -> Any:
    out = LanesType(array.dtype, count)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_data_type(out)
        place = _pointer(context, builder, signature.args, args, kind)
        return builder.load(place, align=_item_bytes(array), typ=kind)

    return out(array, row, column), build


@intrinsic
def load(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """The lanes of a C-contiguous matrix that start at (row, column)."""
    return _loading(array, row, column, LANES)


@intrinsic
def load_line(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """The lanes of a cache line of a C-contiguous matrix, which starts at (row, column)."""
    return _loading(array, row, column, lanes_of_a_line(array.dtype))


@intrinsic
def store(typing_context: Any, array: Any, row: Any, column: Any, lanes: Any) -> Any:
    """Write lanes to a C-contiguous matrix, starting at (row, column)."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_data_type(lanes)
        place = _pointer(context, builder, signature.args, args, kind)
        builder.store(args[3], place, align=_item_bytes(array))
        return context.get_dummy_value()

    return types.void(array, row, column, lanes), build


def _filling(number: Any, count: int) -> Any:
    out = LanesType(number, count)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_data_type(out)
        nothing = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(nothing, args[0], ir.Constant(_INDEX, 0))
        return builder.shuffle_vector(first, nothing, _positions([0] * count))

    return out(number), build


@intrinsic
def fill(typing_context: Any, number: Any) -> Any:
    """The same number in every lane."""
    return _filling(number, LANES)


@intrinsic
def fill_line(typing_context: Any, number: Any) -> Any:
    """The same number in every lane of a cache line."""
    return _filling(number, lanes_of_a_line(number))


@intrinsic
def total(typing_context: Any, lanes: Any) -> Any:
    """The sum over the lanes, always in the same order."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        part = args[0]
        width = lanes.count // 2
        while width:
            nothing = ir.Constant(part.type, ir.Undefined)
            low = builder.shuffle_vector(part, nothing, _positions(range(width)))
            high = builder.shuffle_vector(part, nothing, _positions(range(width, 2 * width)))
            part = builder.fadd(low, high, flags=_FLAGS)
            width //= 2
        return builder.extract_element(part, ir.Constant(_INDEX, 0))

    return lanes.dtype(lanes), build


def _define(operation: Any, instruction: str) -> None:
    """Give an operator its meaning for lanes."""

    @intrinsic
    def combine(typing_context: Any, a: Any, b: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args, flags=_FLAGS)

        return a(a, b), build

    @overload(operation)
    def choose(a, b):
        if isinstance(a, LanesType) and a == b:
            return lambda a, b: combine(a, b)
        return None


_define(operator.mul, "fmul")
_define(operator.add, "fadd")


def _positions(numbers: Any) -> Any:
    chosen = list(numbers)
    return ir.Constant(ir.VectorType(_INDEX, len(chosen)), chosen)


def _item_bytes(array: Any) -> int:
    return array.dtype.bitwidth // 8


def _pointer(context: Any, builder: Any, kinds: Any, args: Any, lanes: Any) -> Any:
    """Return the address at which lanes start; unlike NumPy's indexing it never counts from the
    end.
    """
    array = context.make_array(kinds[0])(context, builder, args[0])
    row, column = (
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(args[1:3], kinds[1:3], strict=True)
    )
    width = builder.extract_value(array.shape, 1)
    place = builder.gep(array.data, [builder.add(builder.mul(row, width), column)])
    return builder.bitcast(place, ir.PointerType(lanes))
