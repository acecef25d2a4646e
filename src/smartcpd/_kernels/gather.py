"""Reading the sampled fibers of a dense tensor, whatever its dtype and memory layout.

The compiled loops know a tensor only by a *handle*: its address and its strides in bytes. A handle
has one type for every dtype, order and layout, so nothing but these few lines is compiled anew for
a new kind of array, and nothing is ever copied.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import Block, exact_subroutine


@intrinsic(prefer_literal=False)
def _load(typing_context: Any, address: Any, kind: Any) -> Any:
    """The number of type ``kind`` at an address, which need not be aligned."""
    item = kind.dtype

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data_type = context.get_data_type(item)
        pointer = builder.inttoptr(args[0], ir.PointerType(data_type))
        return builder.load(pointer, align=1, typ=data_type)

    return item(types.int64, kind), build


@exact_subroutine
def half_to_float(bits):
    """The value of a float16 from its bits; processors compute with wider numbers only."""
    exponent = (bits >> 10) & 31
    mantissa = bits & 1023
    if exponent == 31:
        magnitude = np.inf if mantissa == 0 else np.nan
    elif exponent == 0:
        magnitude = mantissa * 2.0**-24
    else:
        magnitude = (1024 + mantissa) * 2.0 ** (exponent - 25.0)
    return -magnitude if bits >> 15 else magnitude


@cache
def load_number(data_dtype: str) -> Any:
    """The compiled function that reads a number of some dtype at an address."""
    half = data_dtype == "float16"
    stored = {"float16": "uint16", "bool": "uint8"}.get(data_dtype, data_dtype)
    item = numba.from_dtype(np.dtype(stored))

    @exact_subroutine
    def number(address):
        x = _load(address, item)
        return half_to_float(x) if half else x

    return number


@cache
def dense_gather(data_dtype: str, dtype: str) -> Block:
    """``out[i, f]`` = row ``first + i`` of fiber f along ``mode``."""
    number = load_number(data_dtype)

    def gather(handle, fibers, mode, first, out):
        stride = handle[1 + mode]
        n_fibers = fibers.shape[0]
        address = np.empty(n_fibers, np.int64)
        for f in range(n_fibers):
            address[f] = handle[0] + first * stride
            for k in range(fibers.shape[1]):
                if k != mode:
                    address[f] += fibers[f, k] * handle[1 + k]
        for i in range(out.shape[0]):
            for f in range(n_fibers):
                out[i, f] = number(address[f] + i * stride)

    return kinds.compile_block(kinds.Gather, gather, f"gather.{data_dtype}", dtype)


@cache
def dense_lines(data_dtype: str, dtype: str) -> Block:
    """Like `dense_gather`, with a fiber a row: ``out[f, i]``. The cells of a fiber lie side by
    side.
    """
    number = load_number(data_dtype)
    item_bytes = np.dtype(data_dtype).itemsize

    def gather(handle, fibers, mode, first, out):
        stride = handle[1 + mode]
        for f in range(fibers.shape[0]):
            address = handle[0] + first * stride
            for k in range(fibers.shape[1]):
                if k != mode:
                    address += fibers[f, k] * handle[1 + k]
            row = out[f]
            if stride == item_bytes:
                for i in range(row.size):
                    row[i] = number(address + i * item_bytes)
            else:
                for i in range(row.size):
                    row[i] = number(address + i * stride)

    return kinds.compile_block(kinds.Gather, gather, f"lines.{data_dtype}", dtype)


def reading(
    gather: kinds.Gather,
    handle: kinds.Integers,
    modes: kinds.Integers,
    fibers: kinds.IntegerStack,
    out: kinds.Matrix,
):
    """Read what each of many iterations reads, and do nothing with it: this is how reading is
    timed.
    """
    for t in range(modes.size):
        gather(handle, fibers[t], modes[t], 0, out)


@cache
def compiled_reading(dtype: str) -> Any:
    return kinds.compile_annotated(reading, dtype=dtype)
