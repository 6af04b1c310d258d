"""Values as texts: casts to text, date_format and from_unixtime; where the texts sort as the values do, they prune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.expr.datetimes import civil_from_days, date_text
from indextables.core.expr.functions.function import Function, Signature, Site
from indextables.core.expr.functions.instants import (
    DATE,
    MICROS_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    known_span,
    to_local,
)
from indextables.core.expr.image import Array, Image, Pieces
from indextables.core.expr.vectors import Vector
from indextables.core.states import EMPTY, NOTHING, TOP, Cut, Cuts, Ordinals, States, space_of, union
from indextables.core.types import DataType, PrimitiveType

_STRING: Final = PrimitiveType("string")
_LONG: Final = PrimitiveType("long")
_TEXT: Final = space_of(_STRING)
_MOST_WANTED: Final = 1000
"""Of more intervals of texts only the least and the greatest text are looked for."""
_YEAR_1, _YEAR_10000 = -719_162, 2_932_897
"""Days between which texts of dates sort as dates do."""


@dataclass(frozen=True, eq=False)
class Spelled:
    """A value as a text; on each of the pieces the texts rise, or fall, as the values rise."""

    argument: Ordinals
    pieces: tuple[tuple[int, int], ...]
    text: Callable[[int], str]
    unsorted: Cuts = EMPTY
    """Values whose texts are in no order."""
    texts: Callable[[Array], Any] | None = None
    """Many texts at once, where there is a faster way."""
    result: Ordinals = _TEXT

    @property
    def exact(self) -> bool:
        """Returns whether preimages hold no value too many."""
        return not self.unsorted

    def preimage(self, wanted: States) -> States:
        """Returns the values whose text is wanted."""
        pairs = list(zip(wanted.cuts[::2], wanted.cuts[1::2], strict=True))
        if len(pairs) > _MOST_WANTED:
            pairs = [(wanted.cuts[0], wanted.cuts[-1])]
        found = [self._within(first, last, *pair) for first, last in self.pieces for pair in pairs]
        if pairs:
            found.append(self.unsorted)
        return States(union([cuts for cuts in found if cuts] or [EMPTY]), wanted.null)

    def _within(self, first: int, last: int, start: Cut, end: Cut) -> Cuts:
        low, high = self._bytes(first), self._bytes(last)
        if min(low, high) >= end or max(low, high) < start:
            return EMPTY
        if low <= high:
            cuts = (self._first(first, last, start), self._first(first, last, end))
        else:
            cuts = (
                self._first(first, last, end, falls=True),
                self._first(first, last, start, falls=True),
            )
        return cuts if cuts[0] < cuts[1] else EMPTY

    def _first(self, first: int, last: int, cut: Cut, *, falls: bool = False) -> int:
        """Returns the first value whose text is not below the cut any more or, where they fall, is below it."""
        if cut is TOP:
            return first if falls else last + 1
        low, high = first, last + 1
        while low < high:
            middle = (low + high) // 2
            if (self._bytes(middle) < cut) is falls:
                high = middle
            else:
                low = middle + 1
        return low

    def _bytes(self, value: int) -> bytes:
        return self.text(value).encode()

    def errors(self) -> States:
        """Returns nothing: every value has a text."""
        return NOTHING

    def rows(self, vector: Vector) -> Vector:
        """Returns the texts of a column; each distinct value is spelled once."""
        if self.texts is not None:
            found = self.texts(vector.values)
        else:
            distinct, at = np.unique(vector.values, return_inverse=True)
            spelled = pa.array([self.text(int(value)) for value in distinct], pa.string())
            found = spelled.take(pa.array(at))
        return Vector(_STRING, found, vector.null, np.zeros_like(vector.null), vector.error)


def spelled(source: DataType, zone: Any) -> Sequence[Image] | None:
    """Returns the steps of a cast to text; None for types of which Java alone knows the text."""
    match source:
        case PrimitiveType("boolean"):
            names = ("false", "true")
            return (Spelled(space_of(source), ((0, 1),), lambda x: names[x]),)
        case PrimitiveType("byte" | "short" | "integer" | "long"):
            first, end = space_of(source).universe
            return (Spelled(space_of(source), _of_same_length(first, end - 1), str, texts=_numbers),)
        case PrimitiveType("date"):
            low, end = space_of(DATE).universe
            unsorted = (low, _YEAR_1, _YEAR_10000, end)
            return (Spelled(space_of(DATE), ((_YEAR_1, _YEAR_10000 - 1),), date_text, unsorted),)
        case PrimitiveType("timestamp"):
            return (to_local(zone), _on_clock(_time_text))
        case PrimitiveType("timestamp_ntz"):
            return (_on_clock(_time_text),)
        case _:
            return None


def _of_same_length(first: int, last: int) -> tuple[tuple[int, int], ...]:
    """Returns the integers in pieces of one sign and number of digits, whose texts are in order."""
    ends = [0, *(10**digits for digits in range(1, 20))]
    rising = [(low, min(high - 1, last)) for low, high in pairwise(ends) if low <= last]
    falling = [(max(-high, first), -max(low, 1)) for low, high in rising]
    falling[-1] = (first, falling[-1][1])
    return (*reversed(falling), *rising)


def _numbers(values: Array) -> Any:
    return pc.cast(pa.array(values, pa.int64()), pa.string())


def _on_clock(text: Callable[[int], str], *, is_sorted: bool = True) -> Spelled:
    """Returns times on a clock without a zone as texts."""
    space = space_of(TIMESTAMP_NTZ)
    low, end = space.universe
    if not is_sorted:
        return Spelled(space, (), text, (low, end))
    first, last = _YEAR_1 * MICROS_OF_DAY, _YEAR_10000 * MICROS_OF_DAY
    return Spelled(space, ((first, last - 1),), text, (low, first, last, end))


def _time_text(micros: int) -> str:
    """Returns a time as Spark casts it to text: without the zeros at the end of its fraction."""
    days, rest = divmod(micros, MICROS_OF_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{date_text(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{fraction:06}".rstrip("0") if fraction else clock


# Patterns of date_format

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEK: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_Fields = tuple[int, int, int, int, int]
"""Year, month, day, days since 1970 and microseconds of the day."""
_PARTS: Final[dict[str, Callable[[_Fields], str]]] = {
    "yyyy": lambda at: date_text(at[3]).rsplit("-", 2)[0],
    "yy": lambda at: f"{abs(at[0]) % 100:02}",
    "MM": lambda at: f"{at[1]:02}",
    "M": lambda at: str(at[1]),
    "MMM": lambda at: _MONTHS[at[1] - 1][:3],
    "MMMM": lambda at: _MONTHS[at[1] - 1],
    "dd": lambda at: f"{at[2]:02}",
    "d": lambda at: str(at[2]),
    **dict.fromkeys(("E", "EE", "EEE"), lambda at: _WEEK[(at[3] + 3) % 7][:3]),
    "EEEE": lambda at: _WEEK[(at[3] + 3) % 7],
    "HH": lambda at: f"{at[4] // 3_600_000_000:02}",
    "H": lambda at: str(at[4] // 3_600_000_000),
    "mm": lambda at: f"{at[4] // 60_000_000 % 60:02}",
    "ss": lambda at: f"{at[4] // 1_000_000 % 60:02}",
    "SSS": lambda at: f"{at[4] // 1000 % 1000:03}",
    "SSSSSS": lambda at: f"{at[4] % 1_000_000:06}",
}
_SORTED: Final = (("yyyy",), ("MM",), ("dd",), ("HH",), ("mm",), ("ss",), ("SSS", "SSSSSS"))
"""In this order, and beginning with the first, parts of a time make texts that sort as times do."""
_RESERVED: Final = frozenset("[]{}#")


@lru_cache(maxsize=64)
def formatted(pattern: str) -> Spelled | None:
    """Returns times without a zone in a pattern of Java's; None for a pattern with other parts than the usual.

    >>> formatted("yyyy/MM/dd 'at' HH").text(0)
    '1970/01/01 at 00'
    """
    parts = _parsed(pattern)
    if parts is None:
        return None
    named = [name for name, is_part in parts if is_part]
    is_sorted = bool(named) and all(
        name in allowed for name, allowed in zip(named, _SORTED, strict=False)
    )

    def text(micros: int) -> str:
        days, rest = divmod(micros, MICROS_OF_DAY)
        at = (*civil_from_days(days), days, rest)
        return "".join(_PARTS[name](at) if is_part else name for name, is_part in parts)

    return _on_clock(text, is_sorted=is_sorted and len(named) <= len(_SORTED))


def _parsed(pattern: str) -> list[tuple[str, bool]] | None:
    """Returns the parts of a pattern and the texts between them."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        stop = at + 1
        if letter == "'":
            stop = pattern.find("'", at + 1)
            if stop < 0 or "''" in pattern:
                return None
            parts.append((pattern[at + 1 : stop], False))
            stop += 1
        elif letter.isascii() and letter.isalpha():
            while stop < len(pattern) and pattern[stop] == letter:
                stop += 1
            if pattern[at:stop] not in _PARTS:
                return None
            parts.append((pattern[at:stop], True))
        elif letter in _RESERVED:
            return None
        else:
            parts.append((letter, False))
        at = stop
    return parts


def _format_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    kind, pattern = types
    is_time = kind in {DATE, TIMESTAMP, TIMESTAMP_NTZ} and pattern == _STRING
    return ((TIMESTAMP, _STRING), _STRING) if is_time else None


def _formatted(site: Site) -> Sequence[Image] | None:
    pattern = site.constants[1]
    found = formatted(pattern) if isinstance(pattern, str) and site.varying == 0 else None
    return None if found is None else (to_local(site.zone), found)


def _unixtime_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    number, *pattern = types
    is_whole = number in {PrimitiveType(name) for name in ("byte", "short", "integer", "long")}
    return ((_LONG, *pattern), _STRING) if is_whole and pattern in ([], [_STRING]) else None


def _from_unixtime(site: Site) -> Sequence[Image] | None:
    pattern = site.constants[1] if len(site.constants) > 1 else "yyyy-MM-dd HH:mm:ss"
    found = formatted(pattern) if isinstance(pattern, str) and site.varying == 0 else None
    if found is None:
        return None
    first, last = (end // 1_000_000 for end in known_span(site.zone))
    ends = np.array([first + 1]), np.array([last - 1])
    low, end = site.argument.universe
    seconds = Pieces(
        site.argument,
        space_of(TIMESTAMP),
        *ends,
        lambda x: x * 1_000_000,
        anything=(low, first + 1, last, end),
    )
    return (seconds, to_local(site.zone), found)


_PATTERNS: Final = ("yyyy-MM", "yyyy-MM-dd HH:mm:ss", "yyyyMMdd", "EEE, d MMM yy H", "MM/dd/yyyy")

FUNCTIONS: Final = (
    Function(
        "date_format",
        _format_signature,
        _formatted,
        zoned=True,
        catalyst="DateFormatClass",
        samples=tuple((TIMESTAMP, pattern) for pattern in _PATTERNS),
    ),
    Function(
        "from_unixtime",
        _unixtime_signature,
        _from_unixtime,
        zoned=True,
        catalyst="FromUnixTime",
        samples=((_LONG,), (_LONG, "yyyy-MM-dd")),
    ),
)
