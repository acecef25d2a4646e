"""How dates and times are written: the formats that a text may be in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from smartcpd._data.tables.sql import literal

NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
LONG_NAMES = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
FOREIGN = (
    "enero gennaio janeiro januar janvier januari janv jän ene gen",
    "febrero febbraio fevereiro februar février fevrier februari févr fév fev feb",
    "marzo março märz maerz mars maart mär mrz",
    "abril aprile avril april abr avr",
    "mayo maggio maio mai mei mag",
    "junio giugno junho juni juin giu",
    "julio luglio julho juli juillet juil lug",
    "agosto août aout august augustus ago aoû",
    "septiembre settembre setembro september septembre set sept",
    "octubre ottobre outubro oktober octobre okt out ott",
    "noviembre novembre novembro november",
    "diciembre dicembre dezembro dezember décembre decembre december dez dic déc",
)
"""Names of the twelve months in Spanish, Italian, Portuguese, German, French and Dutch."""
_IN_ENGLISH = {name: NAMES[i] for i, names in enumerate(FOREIGN) for name in names.split()}
_WORD = re.compile(r"[^\W\d_]{3,}")
_MONTH = f"(?P<b>{'|'.join(LONG_NAMES)}|sept|{'|'.join(NAMES)})\\.?"
_WEEKDAY = (
    r"(?:(?P<a>mon|tue|wed|thu|fri|sat|sun)(?P<long>day|sday|nesday|rsday|urday)?"
    r"(?P<comma>[,.]?) +)?"
)
_CLOCK = (
    r"(?P<H>\d{1,2})(?:(?P<colon>[:.h])(?P<M>\d{2})(?:[:.](?P<S>\d{2})(?P<f>[.,]\d+)?)?)?"
    r"(?:(?P<gap> ?)(?P<p>[ap]\.?m\.?))?"
)
_ZONE = r"(?P<zone>Z| ?UTC| ?GMT| ?[+-]\d{2}:?\d{2}| ?[+-]\d{2}| [A-Z]{3,4})?"
_REST = rf"(?:(?P<sep>T| at |, | +|:|_){_CLOCK}{_ZONE})?"
_DAYS = (
    (r"(?P<Y>\d{4})(?P<s>[-/._ ])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})", ("ymd", "ydm")),
    (r"(?P<d>\d{1,2})(?P<s>[-/. ])(?P<m>\d{1,2})(?P=s)(?P<Y>\d{4})", ("dmy", "mdy")),
    (r"(?P<d>\d{1,2})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<y>\d{2})", ("dmy", "mdy", "ymd")),
    (
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?P<s>\.? |[-/.])?{_MONTH}(?P<t>,? |[-/.])?"
        r"(?P<Y>\d{4})",
        ("",),
    ),
    (rf"(?P<d>\d{{1,2}})(?P<s>\.? |[-/.])?{_MONTH}(?P<t>,? |[-/.])?(?P<y>'?\d{{2}})", ("",)),
    (rf"{_MONTH}(?P<s>[ -/])(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?P<t>,? |,|-)(?P<Y>\d{{4}})", ("",)),
    (rf"(?P<Y>\d{{4}})(?P<s>[-/. ]){_MONTH}(?P=s)(?P<d>\d{{1,2}})", ("",)),
    (r"(?P<Y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})", ("",)),
    (r"(?P<m>\d{1,2})(?P<s>[-/.])(?P<Y>\d{4})", ("",)),
    (rf"{_MONTH}(?P<s>,? |[-/.])(?P<Y>\d{{4}})", ("",)),
    (rf"{_MONTH}(?P<s>[-/. ])(?P<y>'?\d{{2}})", ("",)),
    (rf"(?P<Y>\d{{4}})(?P<s>[-/. ])?{_MONTH}", ("",)),
    (r"(?P<Y>\d{4})(?P<s>[-/. ]?)Q(?P<q>[1-4])", ("",)),
    (r"Q(?P<q>[1-4])(?P<s>[-/. ]?)(?P<Y>\d{4})", ("",)),
    (r"(?P<G>\d{4})(?P<s>-?)W(?P<V>\d{2})", ("",)),
)
"""Patterns of days, and the orders of day, month and year that they leave open."""
_UNIX = rf"{_WEEKDAY}{_MONTH} +(?P<d>\d{{1,2}}) {_CLOCK}(?: (?P<tz>[A-Z]{{3,4}}))? (?P<Y>\d{{4}})"
_HINT = re.compile(rf"\d[-/._ ]\d|[QW]\d|{'|'.join(NAMES)}", re.IGNORECASE)
"""What every date has that is not written in digits alone."""
_TIME = re.compile(_CLOCK, re.IGNORECASE)
_COMPACT = (
    (re.compile(r"(?:19|20)\d{6}"), ("%Y%m%d",)),
    (re.compile(r"(?:19|20)\d{6}(?P<s>[T_ -]?)\d{4}"), ("%Y%m%d{s}%H%M",)),
    (re.compile(r"(?:19|20)\d{6}(?P<s>[T_ -]?)\d{6}(?P<z>Z?)"), ("%Y%m%d{s}%H%M%S{z}",)),
)
QUARTERS = tuple((f"[Qq]{q}", f"{3 * q - 2:02d}") for q in (1, 2, 3, 4))
REPAIRS = {
    "foreign": (
        (r"(?i)\b([0-9]{1,2})\.? (de|di) ", r"\1 "),
        (r"(?i) (de|del|di) ([0-9]{4})", r" \2"),
        *(
            (rf"(?i)(^|[^\p{{L}}])({'|'.join(names.split())})([^\p{{L}}]|$)", rf"\1{english}\3")
            for names, english in zip(FOREIGN, NAMES, strict=True)
        ),
    ),
    "ideographs": ((r"年 ?", "-"), (r"月 ?", "-"), ("日", ""), (r"-( |$)", r"\1")),
    "midnight": ((r"^ *24:00", "00:00"),),
    "fraction": ((r"(\.[0-9]{6})[0-9]+", r"\1"),),
    "meridiem": ((r"([AaPp])\.?([Mm])\.", r"\1\2"), (r"([AaPp])\.([Mm])", r"\1\2")),
    "september": ((r"(?i)sept\b", "Sep"),),
    "ordinal": ((r"([0-9])(st|nd|rd|th)", r"\1"),),
    "dot": ((r"(?i)\b([a-z]{3,4})\.", r"\1"),),
    "apostrophe": (("'", ""),),
    "quarter": QUARTERS,
    "bracket": ((r"^ *\[", ""), (r"\] *$", "")),
}
"""Texts that `strptime` does not read, and what to put in their place."""


@dataclass(frozen=True)
class DateFormat:
    """A format of `strptime`, the order of day and month it takes, and the repairs it needs."""

    text: str
    order: str = ""
    """``dmy`` and so on where another order would be possible, else empty."""
    repairs: tuple[str, ...] = ()
    in_utc: bool = False
    """Whether the text says that the time is in UTC."""

    @property
    def has_day(self) -> bool:
        return any(sign in self.text for sign in ("%d", "%j", "%V")) or not self.has_date

    @property
    def has_date(self) -> bool:
        return any(sign in self.text for sign in ("%Y", "%y", "%G", "%c", "%x"))

    @property
    def is_zoned(self) -> bool:
        return "%z" in self.text or "%Z" in self.text

    @property
    def has_time(self) -> bool:
        return any(sign in self.text for sign in ("%H", "%I", "%c", "%X"))


@lru_cache(maxsize=10_000)
def formats_of(text: str) -> list[DateFormat]:
    """Return the formats that a text may be in, the likeliest first."""
    text = text.strip()
    if len(text) > 45 or not any(c.isdigit() for c in text):
        return []
    bare = text.removeprefix("[").removesuffix("]")
    if bare != text:  # as in logs of web servers
        return [replace(f, repairs=(*f.repairs, "bracket")) for f in formats_of(bare)]
    if "年" in text:
        plain = re.sub("-( |$)", r"\1", re.sub("[年月] ?", "-", text).replace("日", ""))
        return [replace(f, repairs=(*f.repairs, "ideographs")) for f in formats_of(plain)]
    names = {word.lower() for word in _WORD.findall(text)} & _IN_ENGLISH.keys()
    if names and not names <= {*NAMES, *LONG_NAMES, "sept"}:
        return _foreign(text)
    for shape, formats in _COMPACT:
        found = shape.fullmatch(text)
        if found:
            parts = found.groupdict()
            return [DateFormat(f.format(**parts), in_utc=parts.get("z") == "Z") for f in formats]
    if not _HINT.search(text):
        return []
    found = _compiled(_UNIX).fullmatch(text)
    if found:
        zone = f" {found['tz']}" if found["tz"] else ""
        clock, repairs = _clock(found)
        month, more = _month(found["b"])
        form = f"{_weekday(found)}{month} %d {clock}{zone} %Y"
        return [DateFormat(form, "", (*repairs, *more), found["tz"] in ("UTC", "GMT"))]
    return [
        form
        for day, orders in _DAYS
        for form in _shaped(_compiled(f"{_WEEKDAY}{day}{_REST}").fullmatch(text), orders)
    ]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when the first text is compared with it: all of them take as long as
    reading a small table.
    """
    return re.compile(pattern, re.IGNORECASE)


def _foreign(text: str) -> list[DateFormat]:
    """Return the formats of a date whose month is named in another language than English."""

    def english(word: re.Match[str]) -> str:
        return _IN_ENGLISH.get(word.group().lower(), word.group())

    plain = re.sub(r"(?i)\b(\d{1,2})\.? (de|di) ", r"\1 ", text)
    plain = re.sub(r"(?i) (de|del|di) (\d{4})", r" \2", plain)
    plain = _WORD.sub(english, plain)
    if any(word.lower() in _IN_ENGLISH.keys() - {*NAMES} for word in _WORD.findall(plain)):
        return []
    return [replace(f, repairs=("foreign", *f.repairs)) for f in formats_of(plain)]


def clock_of(text: str) -> DateFormat | None:
    """Return the format of a time of day."""
    found = _TIME.fullmatch(text.strip())
    if not found or not (found["M"] or found["p"]) or found["colon"] == ".":
        return None
    clock, repairs = _clock(found)
    if found["H"] == "24":
        repairs += ("midnight",)
    return DateFormat(clock, "", repairs)


def _shaped(found: re.Match[str] | None, orders: tuple[str, ...]) -> list[DateFormat]:
    if found is None:
        return []
    parts = found.groupdict()
    repairs: tuple[str, ...] = ()
    s, t = parts.get("s") or "", parts.get("t") or ""
    month = "%m"
    if parts.get("b"):
        month, repairs = _month(parts["b"])
        if "." in found.group()[found.end("b") : found.end("b") + 1]:
            repairs += ("dot",)
    if parts.get("q"):
        month, repairs = "%m", ("quarter",)
    if re.search(r"\d(st|nd|rd|th)", found.group(), re.IGNORECASE):
        repairs += ("ordinal",)
    year = "%Y" if parts.get("Y") else "%y"
    if "'" in (parts.get("y") or ""):
        repairs += ("apostrophe",)
    clock, zone, in_utc = "", "", False
    if parts.get("H"):
        if parts["sep"] == ":" and not parts["M"]:
            return []
        clock, more = _clock(found)
        repairs += more
        clock = parts["sep"] + clock
        zone, in_utc = _zone(parts["zone"] or "")
    bodies = {
        "dmy": f"%d{s}%m{s}{year}",
        "mdy": f"%m{s}%d{s}{year}",
        "ymd": f"{year}{s}%m{s}%d",
        "ydm": f"{year}{s}%d{s}%m",
    }
    if orders == ("",):
        bodies[""] = _body(parts, month, year, s, t, found)
    return [
        DateFormat(_weekday(found) + bodies[order] + clock + zone, order, repairs, in_utc)
        for order in orders
    ]


def _body(
    parts: dict[str, str], month: str, year: str, s: str, t: str, found: re.Match[str]
) -> str:
    """Return the format of a day whose parts cannot be mistaken, in the order they have."""
    if parts.get("V"):
        return f"%G{s}W%V"
    signs = {"d": "%d", "b": month, "m": "%m", "q": month, "Y": year, "y": year}
    order = sorted((k for k in signs if parts.get(k)), key=lambda k: found.start(k))
    gaps = [s, t or s]
    text = signs[order[0]]
    for gap, key in zip(gaps, order[1:], strict=False):
        text += gap + signs[key]
    return text


def _month(name: str) -> tuple[str, tuple[str, ...]]:
    lowered = name.lower()
    if lowered == "sept":
        return "%b", ("september",)
    return ("%b" if len(lowered) == 3 else "%B"), ()


def _weekday(found: re.Match[str]) -> str:
    if not found["a"]:
        return ""
    return ("%A" if found["long"] else "%a") + found["comma"] + " "


def _clock(found: re.Match[str]) -> tuple[str, tuple[str, ...]]:
    parts = found.groupdict()
    repairs: tuple[str, ...] = ()
    clock = "%I" if parts["p"] else "%H"
    if parts["M"]:
        clock += parts["colon"] + "%M"
    if parts["S"]:
        clock += found.group()[found.start("S") - 1 - found.start()] + "%S"
    if parts["f"]:
        clock += parts["f"][0] + "%f"
        repairs += ("fraction",) if len(parts["f"]) > 7 else ()
    if parts["p"]:
        clock += parts["gap"] + "%p"
        repairs += ("meridiem",) if "." in parts["p"] else ()
    return clock, repairs


def _zone(zone: str) -> tuple[str, bool]:
    if not zone:
        return "", False
    if zone.strip().upper() in ("Z", "UTC", "GMT"):
        return zone, True
    gap = " " if zone.startswith(" ") else ""
    return (f"{gap}%z", True) if zone.strip()[0] in "+-" else (f"{gap}%Z", True)


def parsed(text: str, formats: list[DateFormat]) -> str:
    """SQL of the moment that a text says in one of the formats, NULL if in none."""
    for name in dict.fromkeys(name for form in formats for name in form.repairs):
        for pattern, instead in REPAIRS[name]:
            text = f"regexp_replace({text}, {literal(pattern)}, {literal(instead)})"
    # Years of four digits are read by %Y from two digits too, so that %y is tried first.
    texts = sorted(dict.fromkeys(form.text for form in formats), key=lambda f: "%Y" in f)
    return f"try_strptime({text}, [{', '.join(map(literal, texts))}])"
