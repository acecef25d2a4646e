"""Decimals to the bits of floats, by integer arithmetic alone.

The bits are those of the nearest float64 (Lemire, "Number parsing at a gigabyte per second", 2021).
No float is computed with, so no compiler setting can change a last digit. The few numbers that this
leaves undecided are left to Python.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from smartcpd._kernels.compiling import exact_subroutine

MIN_POWER, MAX_POWER = -342, 308
"""Powers of ten that can lead 19 digits to a float64 that is neither 0 nor infinite."""

UNDECIDED = np.uint64(2**64 - 1)
"""The mark for a number that is left to Python; as the bits of a float it would be a NaN."""

U0, U1, U3, U10 = (np.uint64(k) for k in (0, 1, 3, 10))
U32, U52, U63 = (np.uint64(k) for k in (32, 52, 63))
LOW_HALF = np.uint64(2**32 - 1)
DROPPED_BITS = np.uint64(9)
DROPPED_ONES = np.uint64(2**9 - 1)
"""The low bits of a product that are dropped: of the 64 leading ones 54 or 55 stay, a float64's 53
and those that decide the rounding.
"""


def _power_of_five(q: int) -> int:
    """The 128 leading bits of 5^q, rounded as Lemire's proof wants them."""
    if q >= 0:
        return 5**q << 127 >> (5**q).bit_length() - 1
    divisor = 5**-q
    quotient = (1 << divisor.bit_length() + 127) // divisor
    return quotient + 1 if q >= -27 else quotient


POWERS_OF_FIVE = np.array(
    [divmod(_power_of_five(q), 2**64) for q in range(MIN_POWER, MAX_POWER + 1)], np.uint64
)


# These are inlined because a call for each number would cost as much as reading it.
inlined = partial(exact_subroutine, forceinline=True)


@inlined
def full_product(a, b):
    """(high, low): the 128 bits of a x b."""
    a_high, a_low = a >> U32, a & LOW_HALF
    b_high, b_low = b >> U32, b & LOW_HALF
    middle = a_high * b_low + (a_low * b_low >> U32)
    other = a_low * b_high + (middle & LOW_HALF)
    return a_high * b_high + (middle >> U32) + (other >> U32), a * b


@inlined
def leading_zeros(x):
    """How many of the 64 bits come before the first that is set; x is not 0."""
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if x >> np.uint64(64 - step) == U0:
            x <<= np.uint64(step)
            zeros += step
    return zeros


@inlined
def float_bits(digits, exponent):
    """The bits of the float64 nearest to digits x 10^exponent, or UNDECIDED."""
    if digits == U0:
        return U0
    if exponent < MIN_POWER or exponent > MAX_POWER:
        return UNDECIDED
    zeros = leading_zeros(digits)
    normal = digits << np.uint64(zeros)
    power = POWERS_OF_FIVE[exponent - MIN_POWER]
    high, low = full_product(normal, power[0])
    if high & DROPPED_ONES == DROPPED_ONES:
        carried, _ = full_product(normal, power[1])
        low += carried
        if low < carried:
            high += U1
    top = high >> U63
    shift = top + DROPPED_BITS
    mantissa = high >> shift
    # 217706 / 2^16 is log2(10), near enough for the floor of its multiples.
    binary_exponent = (217706 * exponent >> 16) + 63 + np.int64(top) - zeros + 1023
    halfway = low <= U1 and mantissa & U3 == U1 and mantissa << shift == high
    if binary_exponent <= 0 or binary_exponent >= 2046 or low == UNDECIDED or halfway:
        return UNDECIDED
    mantissa = (mantissa + (mantissa & U1)) >> U1
    # The leading one of the mantissa is not stored; a mantissa rounded up to 2^53 carries into
    # the exponent, as it should.
    return (np.uint64(binary_exponent - 1) << U52) + mantissa
