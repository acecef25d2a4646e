"""What is known of the columns of a table, and what each of them could be of a tensor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from smartcpd._data.tables.account import REFUSED
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.kinds import TIMELY
from smartcpd._data.tables.missing import MISSING_VALUES
from smartcpd._data.tables.numerals import looks_like_number
from smartcpd._data.tables.remarks import about_negatives

FEW, MANY = 2, 5_000
"""A column with a number of labels between these makes a good mode as it is."""
KEPT = 500
MOST_MISSING = 0.1
"""The share of missing values with which a column is still suggested as a mode."""
MOST_LOST = 0.01
"""The share of missing values up to which cells without a value may count as zeros."""
MOST_VALUELESS = 0.5
"""The share of missing values with which a column is still suggested as the value, where there is
one row of each cell.
"""
FEW_NUMBERS = 50
"""Up to so many different real numbers may be labels."""
FEW_WHOLE = 12
"""Up to so many different whole numbers may be labels if hardly two rows have the same, where their
name says that they are, and so many names of which no two rows have the same.
"""
OFTEN = 10
"""How many rows a label has on average, where nothing but its numbers says that it is one."""
UNIQUE = 0.5
"""A column with more different values than this share of the rows identifies them."""
MOST_COLUMNS = 100
"""Number of columns of a grid that a width for coordinates aims at."""
SPREADSHEET_DAYS = 18_000, 75_000
"""The years 1949 to 2105 in days since 1900."""
DATES = (Family.DATE, Family.MOMENT)
NUMBERS = (Family.WHOLE, Family.REAL)
LATITUDE = re.compile(r"(^|[^a-z])lat(itude)?([^a-z]|$)", re.IGNORECASE)
LONGITUDE = re.compile(r"(^|[^a-z])(lon|lng|long|longitude)([^a-z]|$)", re.IGNORECASE)
AMOUNT = re.compile(
    r"(^|[^a-z])(count|number of|num|n|no int|qty|quantity|amount|total|sum|value|price|cost|sales|"
    r"revenue|trips|visits|cases|deaths|births|hits|views|clicks|passengers|people|rain|rainfall|"
    r"snow|precip(itation)?|flow|level|speed|humidity|pressure|volume|weight|score|rating|rate|"
    r"measure(ment)?|freq(uency)?|duration|distance|temp(erature)?|population|income|salary|wage|"
    r"earning|spend|profit|consumption|emission|production|yield|obs value|bytes|"
    r"riders|visitors|pax|wert|anzahl|menge|umsatz|betrag|preis|valeur|montant|prix|quantité|nombre|"
    r"valor|importe|cantidad|precio|ventas|importo|prezzo|qt[ée]|quantità|quantidade|valore|aantal|"
    r"bedrag|antal|belopp|ilość|kwota|liczba)s?([^a-z]|$)",
    re.IGNORECASE,
)
"""Names of columns that hold values rather than labels."""
INTENSITY = re.compile(
    r"(^|[^a-z])(temp(erature)?|pressure|speed|humidity|level|score|rating|rate|density|percent(age)?|"
    r"pct|ratio|index|mean|average|avg|median)s?([^a-z]|$)",
    re.IGNORECASE,
)
"""Names of values of which a sum tells nothing, and a mean does."""
CODE = re.compile(
    r"(^|[^a-z])(id|code|key|zip|postcode|zone|area|year|month|week|day|hour|weekday|line|row|index|"
    r"entry|number)([^a-z]|$)",
    re.IGNORECASE,
)
"""Names of columns whose numbers are labels."""
TIME_PARTS = re.compile(
    r"(?i)\b(year|month|week|day|weekday|quarter|yr|yyyy|date|hour|hr|minute)\b"
)
"""Names of columns that say again what dates say."""
ROW_NAMES = re.compile(r"(?i)(column|unnamed: ?)0|row[ ._]?names?")
"""What a column is called whose name is empty, as programs leave it above the names of rows."""
WIDTHS = ("10.0", "5.0", "1.0", "0.5", "0.1", "0.05", "0.01", "0.005", "0.001", "0.0005", "0.0001")


@dataclass(frozen=True)
class Facts:
    """What is known of a column of so many rows."""

    column: Column
    rows: int
    different: int
    missing: int
    low: str | None
    high: str | None
    middle: tuple[float | None, float | None]
    """The range of numbers without the five per cent at either end."""
    examples: Sequence[str] = ()
    negative: int = 0
    """Number of values below zero."""
    timed: int = 0
    """Number of dates with another time of day than midnight."""
    is_unnamed: bool = False
    """Whether it comes first and is the one column without a name, as names of rows are written."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def words(self) -> str:
        """The name with blanks between its words."""
        return re.sub(r"[_\W]+", " ", re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name))

    def is_coordinate(self, pattern: re.Pattern[str], most: float) -> bool:
        return (
            self.column.family is Family.REAL
            and bool(pattern.search(self.words))
            and self.low is not None
            and -most <= float(self.low) < float(self.high or 0) <= most
        )

    @property
    def is_usable(self) -> bool:
        return self.different >= FEW and self.missing <= MOST_MISSING * self.rows

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, or would if it were read as the value."""
        if self.column.nearly in ("codes", "numbers"):
            return bool(AMOUNT.search(self.words))
        return self.column.family in NUMBERS or self.column.nearly == "marked" or self.is_flag

    @property
    def is_flag(self) -> bool:
        """Whether it says yes or no."""
        return self.column.family is Family.FLAG or self.column.nearly == "flags"

    @property
    def has_nothing(self) -> bool:
        """Whether all of its values are missing, or words that say so of a number."""
        listed = self.different <= len(self.examples)
        return listed and all(text.lower() in MISSING_VALUES for text in self.examples)

    @property
    def numbers_rows(self) -> bool:
        """Whether it counts the rows from 0 or 1, as programs do that write an index."""
        return (
            self.column.family is Family.WHOLE
            and self.low in ("0", "1")
            and self.different == self.rows > FEW
            and float(self.high or 0) - float(self.low) == self.rows - 1
        )

    @property
    def names_rows(self) -> bool:
        """Whether it tells one row from another and nothing more, by its name or its numbers."""
        numbers = self.is_unnamed and self.column.family in NUMBERS
        return self.numbers_rows or (numbers and self.different == self.rows)

    @property
    def is_binary(self) -> bool:
        """Whether it says yes or no, in words or as 1 and 0."""
        ones = self.column.family is Family.WHOLE and (self.low, self.high) == ("0", "1")
        return self.is_flag or ones

    @property
    def counts_days(self) -> bool:
        """Whether it may hold dates as spreadsheets keep them, the number of days since 1900."""
        dated = self.column.family is Family.WHOLE and TIMELY.search(self.name)
        first, last = SPREADSHEET_DAYS
        return bool(dated and first <= float(self.low or 0) <= float(self.high or 0) <= last)

    @property
    def odd_example(self) -> str | None:
        """A value that is not a number, where most are."""
        return next((text for text in self.examples if not looks_like_number(text)), None)

    @property
    def is_amount(self) -> bool:
        """Whether it plainly holds values rather than labels."""
        if not self.is_number or self.names_rows or self.is_flag:
            return False
        if self.column.nearly == "marked":
            return True
        if LATITUDE.search(self.words) or LONGITUDE.search(self.words):
            return False
        named = bool(AMOUNT.search(self.words)) and not re.search(r"(?i)\bid\b", self.words)
        # Nobody puts signs between the digits of an identifier.
        measured = self.column.family is Family.REAL or bool(self.column.how)
        return named or (measured and self.different > FEW_NUMBERS)

    @property
    def is_intensity(self) -> bool:
        """Whether its values have a mean, and no sum that tells anything."""
        return self.is_amount and bool(INTENSITY.search(self.words))

    @property
    def about_negatives(self) -> str:
        """What is said where few values are below zero."""
        return about_negatives(self.name, self.negative, self.rows - self.missing)

    @property
    def is_value(self) -> bool:
        """Whether it could be what cells hold without many rows being lost."""
        most = MOST_MISSING if self.column.family is Family.REAL else MOST_LOST
        return self.is_amount and self.different >= FEW and self.missing <= most * self.rows

    @property
    def is_number_of_cells(self) -> bool:
        """Whether it could be what cells hold if there is one row of each."""
        few = self.missing <= MOST_VALUELESS * self.rows
        return self.is_number and not self.names_rows and self.different >= FEW and few

    @property
    def is_doubtful(self) -> bool:
        """Whether its numbers are rather measured than labels: nothing says that they are labels,
        and they seldom repeat.
        """
        plain = self.column.family is Family.WHOLE and self.column.step is None
        labels = CODE.search(self.words) or TIME_PARTS.search(self.words)
        seldom = self.different > FEW_WHOLE and self.rows < OFTEN * self.different
        return plain and not labels and seldom

    def as_mode(self) -> str:
        """Say how the column could be a mode."""
        family = self.column.family
        if self.different < FEW:
            return "tells nothing: one value" if self.different else "tells nothing: no value"
        if self.numbers_rows:
            return "no: it numbers the rows"
        if family in DATES:
            return "by --bin 1d, 1w, 1mo, weekday" + (", hour" if self.timed else "")
        if family is Family.CLOCK:
            return "by --bin 1h"
        if family is Family.OTHER:
            return "no"
        if self.is_coordinate(LATITUDE, 90) or self.is_coordinate(LONGITUDE, 180):
            return f"by --bin {self.grid_width}; or LAT+LON as one mode of cells"
        if family is Family.REAL and not self.names_rows:
            return "as --value; or --bin 20q"
        if self.is_amount:
            return "as --value" + ("; or --bin 20q" if family in NUMBERS else "")
        if self.different > UNIQUE * self.rows and self.different > self._most_labels:
            plain = family is Family.WHOLE and not (self.is_unnamed or CODE.search(self.words))
            return "hardly: few values repeat" if plain else "looks like an identifier"
        if self.column.nearly == "numbers":
            return "hardly: most values are numbers"
        if self.different > MANY:
            return f"with --top {KEPT}" + ("; or --bin 20q" if family is Family.WHOLE else "")
        share = self.missing / self.rows
        return f"hardly: {share:.0%} of the rows have none" if share > REFUSED else "yes"

    @property
    def _most_labels(self) -> int:
        """Up to how many different values may be labels although few of them repeat."""
        if self.names_rows:
            return 0
        if self.column.family is not Family.WHOLE or self.column.step is not None:
            return FEW_WHOLE if self.different == self.rows else FEW_NUMBERS
        return FEW_WHOLE if CODE.search(self.words) else 0

    @property
    def grid_width(self) -> str:
        """The width of bins that cut most of a coordinate's range into about a hundred."""
        low, high = self.middle
        if low is None or high is None:
            return "0.01"
        fitting = [w for w in WIDTHS if (high - low) / float(w) <= MOST_COLUMNS]
        return fitting[-1] if fitting else WIDTHS[0]
