"""A literal in the domain of the column it is compared with, exactly as Spark (ANSI) coerces.

Spark often casts the *column*: an int against 5.5 is compared as decimal, a long against 1e16 as
double, a date against a timestamp as timestamp. Where that cast keeps the order, the values of the
column that are equal to, below or above the literal can be found exactly; the literal becomes a
`Cut` between them. Where it does not, or where Spark would refuse, the answer is `Incomparable`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

from indextables.core.expr.datetimes import DAY, is_fixed, parse_date, parse_timestamp, to_instant
from indextables.core.predicate.nodes import Literal
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, type_name

# Where a literal falls among the values of a discrete type, found by exact arithmetic or search.

_FLOAT32_INFINITY: Final = 0x7F800000


@dataclass(frozen=True, slots=True)
class Steps:
    """The values of a discrete type, numbered in their order from `low` to `high`."""

    low: int
    high: int
    value: Callable[[int], Any] = lambda number: number


@dataclass(frozen=True, slots=True)
class Exact:
    """A value the column itself can hold, and the only one that equals the literal."""

    value: Any


@dataclass(frozen=True, slots=True)
class Cut:
    """The literal's place: values numbered `first` to before `after` equal it, often none or several."""

    steps: Steps
    first: int
    after: int


@dataclass(frozen=True, slots=True)
class Incomparable:
    """Only the engine can compare these, for this reason."""

    why: str


Coerced: TypeAlias = Exact | Cut | Incomparable


def exact_cut(steps: Steps, value: float | Decimal | Fraction) -> Exact | Cut:
    """Returns the place of a real number among integers.

    >>> exact_cut(Steps(-128, 127), 5), exact_cut(Steps(-128, 127, abs), 5.5).after
    (Exact(value=5), 6)
    """
    first, after = math.ceil(value), math.floor(value) + 1
    return _simplest(steps, _clamp(first, steps), _clamp(after, steps))


def search_cut(steps: Steps, image: Callable[[int], float], value: float) -> Exact | Cut:
    """Returns the place of a literal among the images of the steps under a cast that keeps their order."""
    if math.isnan(value):  # greater than every number
        return Cut(steps, steps.high + 1, steps.high + 1)
    first = _first_where(steps, lambda number: image(number) >= value)
    after = _first_where(steps, lambda number: image(number) > value)
    return _simplest(steps, first, after)


def _simplest(steps: Steps, first: int, after: int) -> Exact | Cut:
    return Exact(steps.value(first)) if after == first + 1 else Cut(steps, first, after)


def _clamp(number: int, steps: Steps) -> int:
    return max(steps.low, min(number, steps.high + 1))


def _first_where(steps: Steps, holds: Callable[[int], bool]) -> int:
    low, high = steps.low, steps.high + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def float32_at(number: int) -> float:
    """Returns the float32 numbered so that order is kept: 0 is 0.0, its neighbours are 1 and -1."""
    single: float = struct.unpack("<f", struct.pack("<I", abs(number)))[0]
    return -single if number < 0 else single


FLOAT32: Final = Steps(-_FLOAT32_INFINITY, _FLOAT32_INFINITY, float32_at)
"""Every float32 but NaN, which is above them all."""


# What kind of constant a literal is, by Spark's names.

_TIME_TYPES: Final = ("date", "timestamp", "timestamp_ntz")


def kind_of(literal: Literal) -> str:
    """Returns Spark's name for the kind of a literal; all integers are one kind."""
    match literal.value:
        case None:
            return "null"
        case _ if isinstance(literal.type, PrimitiveType) and literal.type.name in _TIME_TYPES:
            return literal.type.name
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "double"
        case Decimal():
            return "decimal"
        case str():
            return "string"
        case bytes() | bytearray() | memoryview():
            return "binary"
        case dt.datetime() as value:
            return "timestamp_ntz" if value.tzinfo is None else "timestamp"
        case dt.date():
            return "date"
        case _:
            return type(literal.value).__name__


def mismatch(literal: Literal, dtype: DataType) -> Incomparable:
    """Returns why this literal and a column of this type cannot be compared."""
    return Incomparable(f"Spark cannot compare {type_name(dtype)} with {kind_of(literal)}")


# Dates and timestamps: literals in the domain of the column, in the session's time zone.

_DAYS: Final = Steps(-(2**31), 2**31 - 1)
_MICROS: Final = Steps(-(2**63), 2**63 - 1)
# Days that have a midnight in every zone, as far as Python's calendar goes.
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_MICRO: Final = dt.timedelta(microseconds=1)
_KNOWN_DAYS: Final = Steps(
    dt.date(2, 1, 1).toordinal() - _EPOCH, dt.date(9998, 12, 31).toordinal() - _EPOCH
)


def _physical(literal: Literal) -> Any:
    """Days or microseconds of a date or timestamp literal."""
    value = literal.value
    if isinstance(value, dt.datetime):
        # astimezone(UTC) would leave Python's calendar for times next to its ends
        local = (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // _MICRO  # noqa: DTZ001
        return local - (value.utcoffset() or dt.timedelta()) // _MICRO
    return value.toordinal() - _EPOCH if isinstance(value, dt.date) else value


def for_date(literal: Literal, zone: dt.tzinfo) -> Coerced:
    """Returns a comparison with a date column, which Spark casts to midnights when the literal is a timestamp."""
    match kind_of(literal):
        case "date":
            return exact_cut(_DAYS, _physical(literal))
        case "string":
            days = parse_date(literal.value)
            return (
                Incomparable(f"{literal.value!r} is not a date")
                if days is None
                else exact_cut(_DAYS, days)
            )
        case "timestamp_ntz":
            return exact_cut(_DAYS, Fraction(_physical(literal), DAY))
        case "timestamp":
            return _date_against_instant(_physical(literal), zone)
        case _:
            return mismatch(literal, PrimitiveType("date"))


def _date_against_instant(micros: Any, zone: dt.tzinfo) -> Coerced:
    """Midnights never go back: a skipped one moves to the end of the gap, at most to the next."""
    cut = search_cut(
        _KNOWN_DAYS, lambda day: to_instant(day * DAY, zone) or 0, micros
    )  # never None here
    if isinstance(cut, Exact):
        return cut
    if not _KNOWN_DAYS.low < cut.first <= cut.after <= _KNOWN_DAYS.high:
        return Incomparable("the calendar does not reach that far")
    return Cut(_DAYS, cut.first, cut.after)


def for_timestamp(literal: Literal, zone: dt.tzinfo) -> Coerced:
    """Returns a comparison with a timestamp column: Spark casts every literal to an instant."""
    match kind_of(literal):
        case "timestamp":
            return exact_cut(_MICROS, _physical(literal))
        case "timestamp_ntz":
            return _at_instant(to_instant(_physical(literal), zone))
        case "date":
            return _at_instant(to_instant(_physical(literal) * DAY, zone))
        case "string":
            found = parse_timestamp(literal.value)
            if found is None:
                return Incomparable(f"{literal.value!r} is not a timestamp")
            return _at_instant(to_instant(found.micros, found.zone or zone))
        case _:
            return mismatch(literal, PrimitiveType("timestamp"))


def _at_instant(micros: int | None) -> Coerced:
    return (
        Incomparable("the calendar does not reach that far")
        if micros is None
        else exact_cut(_MICROS, micros)
    )


def for_timestamp_ntz(literal: Literal, zone: dt.tzinfo) -> Coerced:
    """Returns a comparison with a timestamp_ntz column, which Spark casts to instants when the literal is one."""
    match kind_of(literal):
        case "timestamp_ntz":
            return exact_cut(_MICROS, _physical(literal))
        case "date":
            return exact_cut(_MICROS, _physical(literal) * DAY)
        case "timestamp" if is_fixed(zone):
            offset = zone.utcoffset(None) or dt.timedelta()
            return exact_cut(_MICROS, _physical(literal) + offset // _MICRO)
        case "timestamp":
            # In a gap 02:30 becomes 03:30, after 03:00: the cast does not keep the order.
            return Incomparable("Spark casts the timestamp_ntz column to the session's time zone")
        case "string":
            found = parse_timestamp(literal.value)
            if found is None or found.zone is not None:
                return Incomparable(f"{literal.value!r} is not a timestamp without a zone")
            return exact_cut(_MICROS, found.micros)
        case _:
            return mismatch(literal, PrimitiveType("timestamp_ntz"))


_INTEGER_TEXT: Final = re.compile(r"[+-]?\d{1,4000}", re.ASCII)  # int() refuses more than 4300
_FLOAT_TEXT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SPECIAL_FLOATS: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_BOOLEANS: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
# 38 digits on either side of the point; the default context would round to 28.
_WIDE: Final = Context(prec=100)
_SAFE_DOUBLE: Final = 2**53


def coerce(literal: Literal, dtype: DataType, zone: dt.tzinfo, *, ordering: bool) -> Coerced:
    """Returns the literal, which is not NULL, among the values of `dtype`; `ordering` for < <= > >=."""
    match dtype:
        case DecimalType():
            return _for_decimal(literal, dtype)
        case PrimitiveType("byte" | "short" | "integer" | "long" as name):
            return _for_integer(literal, INTEGERS[name], dtype, ordering=ordering)
        case PrimitiveType("float" | "double"):
            return _for_float(literal, dtype)
        case PrimitiveType("date"):
            return for_date(literal, zone)
        case PrimitiveType("timestamp"):
            return for_timestamp(literal, zone)
        case PrimitiveType("timestamp_ntz"):
            return for_timestamp_ntz(literal, zone)
        case PrimitiveType("boolean"):
            return _for_boolean(literal)
        case PrimitiveType("string"):
            return _for_string(literal)
        case PrimitiveType("binary"):
            return _for_binary(literal)
        case _:
            return Incomparable(f"values of type {type_name(dtype)} have no order")


def _for_integer(literal: Literal, bits: int, dtype: DataType, *, ordering: bool) -> Coerced:
    steps = Steps(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    match literal.value:
        case int() as value if kind_of(literal) == "integer":
            return exact_cut(steps, value)
        case Decimal() as value if value.is_finite():
            # Spark rounds both sides when the common decimal needs more than 38 digits, but not
            # under < <= > >=, where it compares with the nearest integer.
            if not ordering and not _fits_38(value, _INTEGER_DIGITS[bits], 0):
                return Incomparable("the common decimal type needs more than 38 digits")
            return exact_cut(steps, value)
        case float() as value:
            if math.isfinite(value) and (bits <= 32 or abs(value) < _SAFE_DOUBLE):
                return exact_cut(steps, value)
            return search_cut(steps, float, value)
        case str() as text:
            found = _INTEGER_TEXT.fullmatch(text.strip(" \t\r\n"))
            if found and -(2**63) <= int(found[0]) < 2**63:
                return exact_cut(steps, int(found[0]))
            return Incomparable(f"{text!r} is not a bigint")
        case _:
            return mismatch(literal, dtype)


_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}


def _for_decimal(literal: Literal, dtype: DecimalType) -> Coerced:
    top, unit = 10**dtype.precision - 1, 10**dtype.scale
    steps = Steps(-top, top, lambda number: _decimal(number, dtype.scale))
    match literal.value:
        case int() | Decimal() as value if _is_exact_number(literal):
            if not _fits_38(Decimal(value), dtype.precision - dtype.scale, dtype.scale):
                return Incomparable("the common decimal type needs more than 38 digits")
            return exact_cut(steps, Decimal(value).scaleb(dtype.scale, _WIDE))
        case float() as value:
            return search_cut(steps, lambda number: number / unit, value)
        case str() as text if (parsed := parse_float(text)) is not None:
            return search_cut(steps, lambda number: number / unit, parsed)
        case _:
            return mismatch(literal, dtype)


def _is_exact_number(literal: Literal) -> bool:
    return kind_of(literal) in {"integer", "decimal"} and Decimal(literal.value).is_finite()


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, _WIDE)


def _fits_38(value: Decimal, whole_digits: int, scale: int) -> bool:
    """Returns whether a type that holds both the literal and the column's values has at most 38 digits."""
    whole, after_point = digits_of(value)
    return max(whole, whole_digits) + max(after_point, scale) <= 38


def digits_of(value: Decimal) -> tuple[int, int]:
    """Digits before and after the point, as the literal is written."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + exponent, 0), max(-exponent, 0)


def _for_float(literal: Literal, dtype: DataType) -> Coerced:
    match literal.value:
        case str() as text:
            value = parse_float(text)
        case int() | float() | Decimal() as number if kind_of(literal) in {
            "integer",
            "double",
            "decimal",
        }:
            value = _to_double(number)
        case _:
            return mismatch(literal, dtype)
    if value is None:
        return Incomparable(f"{literal.value!r} is not a double")
    if math.isnan(value):
        return Exact(math.nan)  # one object for all: a NaN is no equal of another as a dict key
    if dtype == PrimitiveType("double"):
        return Exact(value)
    return search_cut(FLOAT32, float32_at, value)


def _to_double(number: float | Decimal) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def parse_float(text: str) -> float | None:
    """Returns the double CAST(text AS DOUBLE) gives, None where it may be an error.

    >>> parse_float(" 1.5e3 "), parse_float("-Infinity"), parse_float("0x10")
    (1500.0, -inf, None)
    """
    bare = text.strip(" \t\r\n")
    readable = _FLOAT_TEXT.fullmatch(bare) or _SPECIAL_FLOATS.fullmatch(bare)
    return float(bare) if readable else None


def _for_boolean(literal: Literal) -> Coerced:
    value = literal.value
    if isinstance(value, str):
        value = _BOOLEANS.get(value.strip(" \t\r\n").lower())
    return Exact(value) if isinstance(value, bool) else mismatch(literal, PrimitiveType("boolean"))


def _for_string(literal: Literal) -> Coerced:
    if not isinstance(literal.value, str):
        return Incomparable(f"Spark casts the string column to {kind_of(literal)}")
    return (
        Exact(literal.value)
        if is_valid_text(literal.value)
        else Incomparable("the text is not valid Unicode")
    )


def _for_binary(literal: Literal) -> Coerced:
    match literal.value:
        case bytes() | bytearray() | memoryview() as value:
            return Exact(bytes(value))
        case str() as text if is_valid_text(text):
            return Exact(text.encode())
        case _:
            return mismatch(literal, PrimitiveType("binary"))


def is_valid_text(text: str | bytes) -> bool:
    """Returns whether UTF-8 can hold it: a lone surrogate is a Python character, but no Unicode."""
    if isinstance(text, bytes):
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
