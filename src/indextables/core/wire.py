"""Bounds as JSON: how one value is written into a log line and read back from it."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from indextables.core.datatypes import INTEGERS, DataType, DecimalType, PrimitiveType

Physical: TypeAlias = bool | int | float | Decimal | str | bytes
Json: TypeAlias = Any
Round: TypeAlias = Literal["down", "up"]
"""Which way a value goes that its type cannot hold: down for a lower bound, up for an upper one."""


class Omit:
    """What `encode_value` answers for a value the wire cannot hold; there is one, `OMIT`."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT: Final = Omit()

EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000_000
FIRST_DAY: Final = dt.date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = dt.date.max.toordinal() - EPOCH_ORDINAL
FIRST_MICRO: Final = FIRST_DAY * _DAY
LAST_MICRO: Final = (LAST_DAY + 1) * _DAY - 1
"""The last microsecond of year 9999: text has no place for a later one."""

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_INFINITIES: Final = {"Infinity": math.inf, "-Infinity": -math.inf}
_EXACT: Final = Context(prec=100)


def encode_value(value: Physical, dtype: DataType) -> Json | Omit:
    """The JSON form of a bound, or OMIT where JSON has none: NaN, years outside 1-9999."""
    match dtype, value:
        case PrimitiveType("float" | "double"), float() | int():
            return _encode_float(float(value))
        case PrimitiveType("date"), int():
            return _date_text(value) if FIRST_DAY <= value <= LAST_DAY else OMIT
        case PrimitiveType("timestamp" | "timestamp_ntz" as name), int():
            if not FIRST_MICRO <= value <= LAST_MICRO:
                return OMIT
            return _timestamp_text(value) + ("Z" if name == "timestamp" else "")
        case PrimitiveType("binary"), bytes():
            return base64.b64encode(value).decode("ascii")
        case PrimitiveType("string"), str():
            return value if _is_unicode(value) else OMIT
        case DecimalType(), Decimal() | int():
            return f"{Decimal(value):f}"
        case _:
            return value


def _encode_float(value: float) -> float | str | Omit:
    if math.isnan(value):
        return OMIT
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _date_text(days: int) -> str:
    return dt.date.fromordinal(days + EPOCH_ORDINAL).isoformat()


def _timestamp_text(micros: int) -> str:
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{_date_text(days)}T{hour:02}:{minute:02}:{second:02}.{fraction:06}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: Python holds it, UTF-8 cannot
        return False
    return True


def decode_value(value: Json, dtype: DataType, round: Round | None = None) -> Physical | None:  # noqa: A002
    """The physical value, read by the column's type and nothing else; None = unknown.

    A value the type cannot hold exactly goes outward with `round`, and is unknown without it.
    """
    match dtype, value:
        case PrimitiveType("boolean"), bool():
            return value
        case _, bool() | None:
            return None
        case PrimitiveType("float" | "double" as name), int() | float() | str():
            number = _INFINITIES.get(value) if isinstance(value, str) else _to_float(value, round)
            return _to_single(number, round) if name == "float" else number
        case PrimitiveType(name), int() if name in INTEGERS:
            return value if -(2**63) <= value < 2**63 else None
        case DecimalType(), int() | str():
            return _to_decimal(value, dtype, round)
        case PrimitiveType("date"), str():
            return _decode_date(value)
        case PrimitiveType("timestamp" | "timestamp_ntz" as name), str():
            return _decode_timestamp(value, zoned=name == "timestamp")
        case PrimitiveType("string"), str():
            return value if _is_unicode(value) else None
        case PrimitiveType("binary"), str():
            return _decode_binary(value)
        case _:
            return None


def _to_float(value: float, round_: Round | None) -> float | None:
    """The double nearest to an int on the side asked for: 2**53 + 1 is no double."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number):
        return None
    if number == value:
        return number
    match round_:
        case None:
            return None
        case "down":
            return number if number < value else math.nextafter(number, -math.inf)
        case "up":
            return number if number > value else math.nextafter(number, math.inf)


def _to_single(value: float | None, round_: Round | None) -> float | None:
    """The same double if it is a float, else its neighbour among floats.

    A writer that prints a float in its own shortest form (0.1 for 0.10000000149…) is off by less
    than half a step; going outward to the next float makes such a bound true again.
    """
    if value is None or round_ is None:
        return value
    return float(snap_to_single(np.array([value]), round_)[0])


def snap_to_single(values: np.ndarray[Any, Any], round_: Round) -> np.ndarray[Any, Any]:
    """Doubles that are floats, each on the side asked for of the value it replaces."""
    toward = np.float32(-np.inf if round_ == "down" else np.inf)
    with np.errstate(all="ignore"):  # beyond the largest float is infinity, and that is right
        near = values.astype(np.float32)
        further = np.nextafter(near, toward).astype(np.float64)
    wide = near.astype(np.float64)
    inside = wide > values if round_ == "down" else wide < values
    return np.where(inside, further, wide)


def _to_decimal(value: int | str, dtype: DecimalType, round_: Round | None) -> Decimal | None:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    number = Decimal(value)
    if number and number.adjusted() >= dtype.precision - dtype.scale:
        return None
    step = Decimal(1).scaleb(-dtype.scale)
    rounding = ROUND_CEILING if round_ == "up" else ROUND_FLOOR
    fitted = number.quantize(step, rounding, _EXACT)
    if fitted != number and round_ is None:
        return None
    # Rounding outward may carry into one digit too many: 99.999 up is 100.00.
    return fitted if not fitted or fitted.adjusted() < dtype.precision - dtype.scale else None


def _decode_date(text: str) -> int | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text).toordinal() - EPOCH_ORDINAL
    except ValueError:
        return None


def _decode_timestamp(text: str, *, zoned: bool) -> int | None:
    """Microseconds; a zone where the type has none, or none where it has one, is unknown."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None or (found[6] is not None) is not zoned:
        return None
    days = _decode_date(found[1])
    hour, minute, second = (int(part or 0) for part in found.group(2, 3, 4))
    offset = _offset_minutes(found[6] or "Z")
    if days is None or offset is None or hour > 23 or minute > 59 or second > 59:
        return None
    seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second
    micros = seconds * 1_000_000 + int((found[5] or "0").ljust(6, "0"))
    return micros if FIRST_MICRO <= micros <= LAST_MICRO else None


def _offset_minutes(zone: str) -> int | None:
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def _decode_binary(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
