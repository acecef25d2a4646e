"""How numbers are written in text: decimal and thousands signs, currencies, percent, brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from smartcpd._data.tables.sql import literal

BLANKS = " \t\u00a0\u2007\u2009\u202f"
"""Blanks that people put around and into numbers."""
CODES = [
    "USD",
    "EUR",
    "GBP",
    "CHF",
    "JPY",
    "INR",
    "CNY",
    "RMB",
    "CAD",
    "AUD",
    "NZD",
    "SEK",
    "NOK",
    "DKK",
    "PLN",
    "CZK",
    "HUF",
    "BRL",
    "MXN",
    "ZAR",
    "KRW",
    "RUB",
    "TRY",
    "SGD",
    "HKD",
    "THB",
    "IDR",
    "ILS",
    "AED",
    "kr",
    "Kč",
    "zł",
    "Ft",
    "Rs",
]
CURRENCY = rf"(?:(?:US|AU|CA|NZ|HK|A|C|R)?\$|[€£¥₹₽₩₺₫₴₦฿₱]|{'|'.join(CODES)}|Rs\.)"
BLANK = f"[{BLANKS}]*"
PLAIN = rf"{BLANK}[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?{BLANK}"
WHOLE = rf"{BLANK}[+-]?[0-9]+{BLANK}"
SHORT = r"[+-]?(?:0[0-9]?|[1-9][0-9]{0,17})"
"""Whole numbers without blanks that fit into 64 bits."""
SHORT_REAL = r"[+-]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"
"""Plain numbers without blanks."""
WHOLE_REAL = r"[+-]?(?:0|[1-9][0-9]{0,14})\.0+"
"""Whole numbers that a program wrote as real ones, since some of them were missing."""
CODED = r"0[0-9]|[1-9][0-9]+"
"""Digits of codes such as 06, where some begin with a zero and none is a single digit."""
PADDED = rf"{BLANK}[+-]?0[0-9]{{2,}}{BLANK}"
"""Digits that begin with zeros, which belong to codes such as 02134 rather than to numbers."""
MARK = (
    rf"(?:{BLANK}[*†‡§¹²³⁴⁵]+|{BLANK}\[[^\]%]{{1,40}}\]|{BLANK}\([a-zA-Z0-9*]{{1,3}}\)"
    rf"|[{BLANKS}]+[a-zA-Zµ°][a-zA-Z0-9µ°/²³]{{0,7}})"
)
"""What statistical offices put behind a number: a flag, the number of a footnote, an interval, a
unit.
"""
LETTER = r"(?:[a-zA-Z]{1,2})"
"""The same without a blank, which codes such as 12A have as well."""
SCALES = frozenset(
    {"k", "m", "mn", "mio", "mill", "million", "millions", "b", "bn", "billion", "t", "tn", "g"}
    | {"tsd", "thousand", "mrd", "lakh", "crore", "hundred"}
)
"""Words in lower case that multiply the numbers that have them, where others have none."""


@dataclass(frozen=True)
class NumberFormat:
    """One way to write numbers."""

    decimal: str = "."
    thousands: str | None = None
    """The sign between groups of three; None is what goes with the decimal sign."""
    marks: str = ""
    """The pattern of what may stand behind a number without being a part of it."""

    @property
    def groups(self) -> str:
        """The signs that may stand between groups of three digits."""
        if self.thousands is not None:
            return self.thousands + (BLANKS if self.thousands == " " else "")
        return {".": ",", ",": "."}[self.decimal] + BLANKS + "'’"

    @property
    def core(self) -> str:
        """The pattern of a number without what stands around it."""
        point = re.escape(self.decimal)
        whole = "[0-9]+"
        if self.groups:
            sign = f"[{re.escape(self.groups)}]"
            whole = rf"(?:[1-9][0-9]{{0,2}}(?:{sign}[0-9]{{2,3}})*{sign}[0-9]{{3}}|[0-9]+)"
        return rf"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"

    @property
    def pattern(self) -> str:
        """The pattern of a number with currency, percent, sign or brackets."""
        money = f"(?:{CURRENCY})?{BLANK}"
        inner = rf"{money}{self.core}{BLANK}{money}"
        signed = rf"[-+−–]?{BLANK}{money}[-+−–]?{BLANK}{self.core}{BLANK}(?:%|{money}|-)"
        marked = f"(?:{self.marks})?" if self.marks else ""
        return rf"{BLANK}(?:\({BLANK}{inner}%?{BLANK}\)|{signed}){marked}{BLANK}"

    def matches(self, text: str) -> str:
        """SQL that says whether a text is such a number."""
        return f"regexp_full_match({text}, {literal(self.pattern)})"

    def value(self, text: str) -> str:
        """SQL of the number as a real one, NULL for other texts."""
        size = f"regexp_extract({text}, {literal(self.core)})"
        if self.groups:
            size = f"translate({size}, {literal(self.groups)}, '')"
        if self.decimal != ".":
            size = f"replace({size}, {literal(self.decimal)}, '.')"
        below = f"regexp_matches({text}, {literal(rf'^[^0-9]*[-−–(]|-{BLANK}$')})"
        return (
            f"CASE WHEN {self.matches(text)} THEN CASE WHEN {below} THEN -1 ELSE 1 END * "
            f"TRY_CAST({size} AS DOUBLE) / CASE WHEN contains({text}, '%') THEN 100 ELSE 1 END END"
        )


POINT, COMMA = NumberFormat("."), NumberFormat(",")
_DECIMAL_COMMA = re.compile(rf"{BLANK}[-+]?(?:[0-9]+,(?:[0-9]{{1,2}}|[0-9]{{4,}})|0,[0-9]+){BLANK}")


@cache
def _either(marks: str) -> re.Pattern[str]:
    """The pattern of numbers with a decimal point or comma, compiled when it is first needed."""
    forms = (replace(form, marks=marks).pattern for form in (POINT, COMMA))
    return re.compile("|".join(f"(?:{form})" for form in forms))


def looks_like_number(text: str) -> bool:
    """Whether a text may be a number in one way of writing or another."""
    return _either("").fullmatch(text) is not None


def looks_marked(text: str) -> bool:
    """Whether a text may be a number with a flag, a footnote or a unit behind it, or without."""
    return _either(MARK).fullmatch(text) is not None


def looks_lettered(text: str) -> bool:
    """Whether a text may be a number with a letter or two right behind it, or without."""
    return _either(LETTER).fullmatch(text) is not None


def has_decimal_comma(text: str) -> bool:
    """Whether a comma in a number can only be the decimal sign."""
    return _DECIMAL_COMMA.fullmatch(text) is not None
