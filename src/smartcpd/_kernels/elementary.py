"""exp and log without branches, so that the compiler vectorises the loops that call them.

The C library's versions are called once per number; on a sampled iteration the exponential alone
then took longer than both matrix products. These agree with them to within 2 units in the last
place (tested over the whole range). Interpreted, they are simply `math.exp` and `math.log`.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from smartcpd._kernels.compiling import in_precision

LOG2E = 1.4426950408889634
LN2_HIGH = 0.693145751953125
LN2_LOW = 1.42860682030941723212e-6
INF = math.inf
NAN = math.nan
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}


def exp(x: float) -> float:
    """e to the power x; compiled, 0 below -708 and inf above 709 (-87 and 88 in float32)."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """Natural logarithm; -inf at 0, NaN below. Compiled, for normal numbers only."""
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan


def _layout(real: Any) -> tuple[Any, Any, int, int]:
    """LLVM's integer and float types of this width, the mantissa's bits and the exponent's bias."""
    if real == types.float64:
        return ir.IntType(64), ir.DoubleType(), 52, 1023
    return ir.IntType(32), ir.FloatType(), 23, 127


@intrinsic
def _power_of_two(typing_context: Any, k: Any) -> Any:
    """2**k for a whole number k held as a float, written straight into the exponent's bits."""
    integer, real, mantissa, bias = _layout(k)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        exponent = builder.add(builder.fptosi(args[0], integer), ir.Constant(integer, bias))
        return builder.bitcast(builder.shl(exponent, ir.Constant(integer, mantissa)), real)

    return k(k), build


@intrinsic
def _exponent(typing_context: Any, x: Any) -> Any:
    """The k of x = m * 2**k with 1 <= m < 2, for a positive normal x, as a float."""
    integer, real, mantissa, bias = _layout(x)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.lshr(builder.bitcast(args[0], integer), ir.Constant(integer, mantissa))
        return builder.sitofp(builder.sub(bits, ir.Constant(integer, bias)), real)

    return x(x), build


@intrinsic
def _guessed_inverse_root(typing_context: Any, x: Any) -> Any:
    """1 / sqrt(x) to within 4 %, for a positive x: halves and negates the exponent's bits."""
    integer, real, _, _ = _layout(x)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        half = builder.lshr(builder.bitcast(args[0], integer), ir.Constant(integer, 1))
        return builder.bitcast(builder.sub(ir.Constant(integer, 0x5FE6EB50C7B537A9), half), real)

    return x(x), build


@numba.njit(**_STRICT)
def root(x):
    """The square root of a float64, at least 0, to 11 digits, in less time than the processor's.

    It takes two steps of Halley's method, each of which triples the digits. It runs only compiled.
    """
    y = _guessed_inverse_root(x)
    # The order of the factors makes 0 times a large number, never 0 times infinity.
    t = (x * y) * y
    y = y * (1.875 + t * (0.375 * t - 1.25))
    t = (x * y) * y
    y = y * (1.875 + t * (0.375 * t - 1.25))
    return x * y


def _exp64(x):
    y = min(max(x, -708.0), 709.0)
    k = np.floor(y * LOG2E + 0.5)
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    p = 1.6059043836821613e-10 * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    e = (p * r * r + r + 1.0) * _power_of_two(k)
    e = 0.0 if x < -708.0 else e
    e = INF if x > 709.0 else e
    return e if x == x else x


def _exp32(x):
    y = min(max(x, -87.0), 88.0)
    k = np.floor(y * LOG2E + 0.5)
    r = (y - k * 0.693359375) + k * 2.12194440e-4
    p = 1.9875691500e-4 * r + 1.3981999507e-3
    p = p * r + 8.3334519073e-3
    p = p * r + 4.1665795894e-2
    p = p * r + 1.6666665459e-1
    p = p * r + 5.0000001201e-1
    e = (p * r * r + r + 1.0) * _power_of_two(k)
    e = 0.0 if x < -87.0 else e
    e = INF if x > 88.0 else e
    return e if x == x else x


def _log64(x):
    k = _exponent(x)
    # The result is halved on the way: 2**-k itself would underflow for the largest numbers.
    m = 0.5 * (x * _power_of_two(1.0 - k))
    high = m > 1.4142135623730951
    m = 0.5 * m if high else m
    k = k + 1.0 if high else k
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-01 * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    h = 0.5 * f * f
    y = k * LN2_HIGH - ((h - (s * (h + p * z) + k * LN2_LOW)) - f)
    y = y if x > 0.0 else NAN
    y = -INF if x == 0.0 else y
    return y if x < INF else x


def _log32(x):
    k = _exponent(x)
    # The result is halved on the way: 2**-k itself would underflow for the largest numbers.
    m = 0.5 * (x * _power_of_two(1.0 - k))
    high = m > 1.4142135623730951
    m = 0.5 * m if high else m
    k = k + 1.0 if high else k
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 0.24279078841 * z + 0.28498786688
    p = p * z + 0.40000972152
    p = p * z + 0.66666662693
    h = 0.5 * f * f
    y = k * 0.693359375 - ((h - (s * (h + p * z) - k * 2.12194440e-4)) - f)
    y = y if x > 0.0 else NAN
    y = -INF if x == 0.0 else y
    return y if x < INF else x


def _compiled_pair(wide: Any, narrow: Any) -> Any:
    wide = numba.njit(wide, **_STRICT)
    narrow = numba.njit(in_precision(narrow, np.float32), **_STRICT)

    def choose(x):
        if x == types.float32:
            return lambda x: narrow(x)
        if isinstance(x, types.Float | types.Integer):
            return lambda x: wide(np.float64(x))
        return None

    return choose


overload(exp)(_compiled_pair(_exp64, _exp32))
overload(log)(_compiled_pair(_log64, _log32))
