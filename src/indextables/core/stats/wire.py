"""Bounds as JSON: how one value is written into an action and read back from it."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final, Literal, TypeAlias, TypeGuard, assert_never

import numpy as np
import numpy.typing as npt

from indextables.core.types.types import (
    INTEGERS,
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
)

Physical: TypeAlias = bool | int | float | Decimal | str | bytes
Round: TypeAlias = Literal["down", "up"]
"""Which way a value that its type cannot hold is moved: down for a lower bound, up for an upper one."""


class Omit:
    """The type of `OMIT`, which stands for a value that JSON cannot hold."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT: Final = Omit()

EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000_000
FIRST_DAY: Final = dt.date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = dt.date.max.toordinal() - EPOCH_ORDINAL
FIRST_MICRO: Final = FIRST_DAY * _DAY
LAST_MICRO: Final = (LAST_DAY + 1) * _DAY - 1
"""The last microsecond of the year 9999, the last one that ISO text can say."""

DATE_PATTERN: Final = r"\d{4}-\d\d-\d\d"
TIMESTAMP_PATTERN: Final = (
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)
NUMBER_PATTERN: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?"
_DATE: Final = re.compile(DATE_PATTERN, re.ASCII)
_TIMESTAMP: Final = re.compile(TIMESTAMP_PATTERN, re.ASCII)
_NUMBER: Final = re.compile(NUMBER_PATTERN, re.ASCII)
_INFINITIES: Final = {"Infinity": math.inf, "-Infinity": -math.inf}
_EXACT: Final = Context(prec=100)


def encode_value(value: Physical, dtype: DataType) -> object:
    """Returns the JSON form of a bound, or OMIT for NaN and for years outside 1-9999."""
    return encoder(dtype)(value)


def encoder(dtype: DataType) -> Callable[[Any], object]:
    """Returns `encode_value` for one type, to be chosen once for many values."""
    match dtype:
        case PrimitiveType("float" | "double"):
            return _encode_float
        case PrimitiveType("date"):
            return _encode_date
        case PrimitiveType("timestamp"):
            return lambda micros: _encode_timestamp(micros, "Z")
        case PrimitiveType("timestamp_ntz"):
            return lambda micros: _encode_timestamp(micros, "")
        case PrimitiveType("binary"):
            return lambda data: base64.b64encode(data).decode("ascii")
        case PrimitiveType("string"):
            return lambda text: text if _is_unicode(text) else OMIT
        case DecimalType():
            return lambda number: f"{Decimal(number):f}"
        case PrimitiveType() | ListType() | MapType() | StructType():
            return lambda value: value
        case _:
            assert_never(dtype)


def _encode_float(value: float) -> float | str | Omit:
    if math.isfinite(value):
        return float(value)
    return OMIT if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _encode_date(days: int) -> str | Omit:
    if not FIRST_DAY <= days <= LAST_DAY:
        return OMIT
    return dt.date.fromordinal(days + EPOCH_ORDINAL).isoformat()


def _encode_timestamp(micros: int, zone: str) -> str | Omit:
    if not FIRST_MICRO <= micros <= LAST_MICRO:
        return OMIT
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{_encode_date(days)}T{hour:02}:{minute:02}:{second:02}.{fraction:06}{zone}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: Python holds it, UTF-8 cannot
        return False
    return True


def decode_value(value: object, dtype: DataType, round: Round | None = None) -> Physical | None:  # noqa: A002
    """Returns the physical value of a bound, decoded by the column's type alone; None if it is unknown.

    A value that the type cannot hold exactly is moved as `round` says, and is unknown without `round`.
    """
    return decoder(dtype, round)(value)


def decoder(dtype: DataType, round_: Round | None) -> Callable[[object], Physical | None]:
    """Returns `decode_value` for one type, to be chosen once for many values."""
    match dtype:
        case PrimitiveType("boolean"):
            return lambda value: value if isinstance(value, bool) else None
        case PrimitiveType("double"):
            return lambda value: _to_float(value, round_)
        case PrimitiveType("float"):
            return lambda value: _to_single(_to_float(value, round_), round_)
        case PrimitiveType("date"):
            return lambda value: _decode_date(value) if isinstance(value, str) else None
        case PrimitiveType("timestamp" | "timestamp_ntz" as name):
            zoned = name == "timestamp"
            return lambda value: (
                _decode_timestamp(value, zoned=zoned) if isinstance(value, str) else None
            )
        case PrimitiveType("string"):
            return lambda value: value if isinstance(value, str) and _is_unicode(value) else None
        case PrimitiveType("binary"):
            return lambda value: _decode_binary(value) if isinstance(value, str) else None
        case DecimalType():
            return lambda value: _to_decimal(value, dtype, round_)
        case PrimitiveType(name) if name in INTEGERS:
            return lambda value: value if _is_int(value) and -(2**63) <= value < 2**63 else None
        case PrimitiveType() | ListType() | MapType() | StructType():
            return lambda _: None
        case _:
            assert_never(dtype)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _to_float(value: object, round_: Round | None) -> float | None:
    """Returns the nearest double in the direction of `round_`: 2**53 + 1, for one, is not a double."""
    if isinstance(value, str):
        return _INFINITIES.get(value)
    if not isinstance(value, float) and not _is_int(value):
        return None
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
    """Returns the double if it is a 32-bit float, else the next float in the direction of `round_`.

    A writer that prints a float in its shortest form (0.1 for 0.10000000149…) is off by less than half a
    step, so the next float outward is a true bound again.
    """
    if value is None or round_ is None:
        return value
    return float(snap_to_single(np.array([value]), round_)[0])


def snap_to_single(values: npt.NDArray[np.float64], round_: Round) -> npt.NDArray[np.float64]:
    """Returns each double if it is a 32-bit float, else the next float in the direction of `round_`."""
    toward = np.float32(-np.inf if round_ == "down" else np.inf)
    with np.errstate(all="ignore"):  # above the largest float comes infinity, which is right
        near = values.astype(np.float32)
        further = np.nextafter(near, toward).astype(np.float64)
    wide = near.astype(np.float64)
    inside = wide > values if round_ == "down" else wide < values
    return np.where(inside, further, wide)


def _to_decimal(value: object, dtype: DecimalType, round_: Round | None) -> Decimal | None:
    is_text = isinstance(value, str) and _NUMBER.fullmatch(value)
    if not isinstance(value, str | int) or not (is_text or _is_int(value)):
        return None
    number = Decimal(value)
    if number and number.adjusted() >= dtype.precision - dtype.scale:
        return None
    step = Decimal(1).scaleb(-dtype.scale)
    rounding = ROUND_CEILING if round_ == "up" else ROUND_FLOOR
    fitted = number.quantize(step, rounding, _EXACT)
    if fitted != number and round_ is None:
        return None
    # Rounding outward may add a digit: 99.999 up is 100.00.
    return fitted if not fitted or fitted.adjusted() < dtype.precision - dtype.scale else None


def _decode_date(text: str) -> int | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text).toordinal() - EPOCH_ORDINAL
    except ValueError:
        return None


def _decode_timestamp(text: str, *, zoned: bool) -> int | None:
    """Returns microseconds; the value is unknown if it has a zone and its type has none, or the reverse."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None or (found[6] is not None) is not zoned:
        return None
    days = _decode_date(found[1])
    hour, minute, second = (int(digits or 0) for digits in found.group(2, 3, 4))
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
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
