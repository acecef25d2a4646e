"""Lines of numbers, read from bytes into arrays and written from arrays into bytes.

Reading never computes with floats: a decimal becomes the *bits* of the nearest float64, as
`decimals` finds them. The few numbers that this leaves undecided are left to Python.

A place ``at`` in a text is an address, and a text ends with a newline: the loops look ahead without
watching the end, and take half the time that they take over an array.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from smartcpd._kernels import kinds
from smartcpd._kernels.decimals import U0, U10, U63, UNDECIDED, float_bits, inlined

Text = Annotated[Any, types.Array(types.uint8, 1, "C", readonly=True)]
Bytes = Annotated[Any, types.uint8[::1]]

TAB, NEWLINE, RETURN, SPACE, HASH, PERCENT = (ord(c) for c in "\t\n\r #%")
PLUS, COMMA, MINUS, POINT, ZERO, LOWER_E = (ord(c) for c in "+,-.0e")
LOWER_CASE = 32
"""The bit that tells 'e' from 'E'."""

INTEGER, DECIMAL, ODD = range(3)
"""How a value is written: as an integer, as a decimal, or in a way that is left to Python."""

INTEGER_DIGITS = 18
MOST_DIGITS = 19
"""Numbers of up to so many digits always fit an int64 and a uint64."""

HUGE_EXPONENT = 9999
"""The exponent at which counting stops, far outside what a float64 can hold."""


@intrinsic
def byte(typing_context: Any, at: Any) -> Any:
    """The byte at an address."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.IntType(8)
        return builder.load(builder.inttoptr(args[0], ir.PointerType(kind)), align=1, typ=kind)

    return types.uint8(types.int64), build


@inlined
def is_blank(c):
    # The first comparison saves the others, since a digit mostly follows a blank.
    return c <= COMMA and (c in (SPACE, COMMA) or (TAB <= c <= RETURN and c != NEWLINE))


@inlined
def is_digit(c):
    return ZERO <= c <= ZERO + 9


@inlined
def ends_token(c):
    return c == NEWLINE or is_blank(c)


@inlined
def ends_entry(c):
    return c in (NEWLINE, HASH, PERCENT)


@inlined
def skip_blanks(at):
    while is_blank(byte(at)):
        at += 1
    return at


@inlined
def token_end(at):
    while not ends_token(byte(at)):
        at += 1
    return at


@inlined
def read_digits(at, digits, significant):
    """Append the digits at ``at``; those after the first that is not zero are significant."""
    if digits == U0:
        while byte(at) == ZERO:
            at += 1
    first = at
    while is_digit(byte(at)):
        digits = digits * U10 + np.uint64(byte(at) - ZERO)
        at += 1
    return at, digits, significant + at - first


@inlined
def read_index(at):
    """(index, where the next column starts); below 1 for anything but a positive int64."""
    end, digits, significant = read_digits(at, U0, 0)
    if significant > MOST_DIGITS or not is_blank(byte(end)):
        return 0, end
    return np.int64(digits), skip_blanks(end)


@inlined
def read_exponent(at):
    """(where it ends, exponent) after an 'e'; it ends where it began if there is none."""
    first = at
    negative = byte(at) == MINUS
    if negative or byte(at) == PLUS:
        at += 1
    if not is_digit(byte(at)):
        return first, 0
    exponent = 0
    while is_digit(byte(at)):
        exponent = min(exponent * 10 + byte(at) - ZERO, HUGE_EXPONENT)
        at += 1
    return at, -exponent if negative else exponent


@inlined
def read_value(at):
    """(kind, end, negative, digits, exponent) of the token at ``at``: digits x 10^exponent."""
    first = at
    negative = byte(at) == MINUS
    if negative or byte(at) == PLUS:
        at += 1
    start = at
    kind = INTEGER
    exponent = 0
    at, digits, significant = read_digits(at, U0, 0)
    has_digits = at > start
    if byte(at) == POINT:
        kind = DECIMAL
        start = at + 1
        at, digits, significant = read_digits(start, digits, significant)
        has_digits = has_digits or at > start
        exponent = start - at
    if has_digits and byte(at) | LOWER_CASE == LOWER_E:
        kind = DECIMAL
        start = at + 1
        at, power = read_exponent(start)
        has_digits = at > start
        exponent += power
    is_number = has_digits and ends_token(byte(at))
    most_digits = INTEGER_DIGITS if kind == INTEGER else MOST_DIGITS
    # An integer cannot keep the sign of "-0".
    minus_zero = kind == INTEGER and negative and digits == U0
    if not is_number or significant > most_digits or minus_zero:
        kind, at = ODD, token_end(first)
    return kind, at, negative, digits, exponent


def parse_entries(
    text: Text,
    limits: kinds.Integers,
    indices: kinds.IntegerMatrix,
    numbers: kinds.Integers,
    floats: kinds.Vector,
    odd: kinds.IntegerMatrix,
) -> tuple[kinds.Integer, kinds.Integer, kinds.Integer, kinds.Flag, kinds.Integer]:
    """Read every line ``i1 ... iN value`` of ``text``; stop at the first that is something else.

    Parameters
    ----------
    limits : the largest index allowed in each mode, counting from 1.
    indices : (order, capacity), filled counting from 0.
    numbers, floats : the values; one memory seen as int64 and as float64. They are integers until
        the first value that is not written as one, from which on all of them are floats.
    odd : (capacity, 2), filled with the entry and the place in ``text`` of values left to Python.

    Returns
    -------
    (entries, lines, odd values, whether the values are floats, start of the line refused or -1)
    """
    start = at = np.int64(text.ctypes.data)
    n_entries = n_lines = n_odd = 0
    floating = False
    while at < start + text.size:
        at = skip_blanks(at)
        line = at
        if not ends_entry(byte(at)):
            for mode in range(limits.size):
                index, at = read_index(at)
                if index < 1 or index > limits[mode]:
                    return n_entries, n_lines, n_odd, floating, line - start
                indices[mode, n_entries] = index - 1
            value = at
            kind, at, negative, digits, exponent = read_value(value)
            rest = skip_blanks(at)
            if ends_entry(byte(value)) or not ends_entry(byte(rest)):
                return n_entries, n_lines, n_odd, floating, line - start
            if kind == INTEGER and not floating:
                whole = np.int64(digits)
                numbers[n_entries] = -whole if negative else whole
            else:
                bits = UNDECIDED if kind == ODD else float_bits(digits, exponent)
                if bits == UNDECIDED:
                    numbers[n_entries] = 0
                    odd[n_odd, 0] = n_entries
                    odd[n_odd, 1] = value - start
                    n_odd += 1
                else:
                    if not floating:
                        floating = True
                        for i in range(n_entries):
                            floats[i] = numbers[i]
                    numbers[n_entries] = np.int64(bits | np.uint64(negative) << U63)
            n_entries += 1
            at = rest
        while byte(at) != NEWLINE:
            at += 1
        at += 1
        n_lines += 1
    return n_entries, n_lines, n_odd, floating, -1


@inlined
def write_integer(number, out, at):
    magnitude = np.uint64(number)
    if number < 0:
        out[at] = MINUS
        at += 1
        magnitude = U0 - magnitude
    end = at + 1
    rest = magnitude // U10
    while rest != U0:
        end += 1
        rest //= U10
    for place in range(end - 1, at - 1, -1):
        out[place] = ZERO + magnitude % U10
        magnitude //= U10
    return end


def write_lines(
    columns: kinds.IntegerMatrix,
    words: Text,
    starts: kinds.Integers,
    which: kinds.Integers,
    out: Bytes,
) -> kinds.Integer:
    """Write row i of the integer ``columns``, then word ``which[i]`` if there are words, on line i.

    Word w is ``words[starts[w]:starts[w + 1]]``. The number of bytes written to ``out`` is
    returned.
    """
    at = 0
    for i in range(columns.shape[1]):
        for k in range(columns.shape[0]):
            at = write_integer(columns[k, i], out, at)
            out[at] = SPACE
            at += 1
        if which.size == 0:
            at -= 1
        else:
            for place in range(starts[which[i]], starts[which[i] + 1]):
                out[at] = words[place]
                at += 1
        out[at] = NEWLINE
        at += 1
    return at


@cache
def compiled_parse_entries() -> Any:
    return kinds.compile_annotated(parse_entries)


@cache
def compiled_write_lines() -> Any:
    return kinds.compile_annotated(write_lines)
