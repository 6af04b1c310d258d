"""Ordinals of a type's space as natural Python values, and natural values of a column's own type."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any, Final

from indextables.core.domain.domain import Bound, Domain, Marker, Range, is_nan
from indextables.core.domain.space import Ordinals, sortable_single
from indextables.core.domain.states import Cut
from indextables.core.domain.states_states import States
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, is_float

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  a timestamp_ntz has no zone
_FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()


def natural(ordinal: Any, dtype: DataType) -> Any:
    """The Python value of an ordinal; OverflowError or ValueError where Python has none."""
    match dtype:
        case PrimitiveType("boolean"):
            return bool(ordinal)
        case PrimitiveType("date"):
            return dt.date.fromordinal(ordinal + _FIRST_DAY)
        case PrimitiveType("timestamp_ntz"):
            return _EPOCH + dt.timedelta(microseconds=ordinal)
        case PrimitiveType("timestamp"):
            return _EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=ordinal)
        case PrimitiveType("float"):
            return _float(ordinal, "<i", "<f", 31)
        case PrimitiveType("double"):
            return _float(ordinal, "<q", "<d", 63)
        case PrimitiveType("string"):
            return ordinal.decode("utf-8", "surrogatepass")
        case DecimalType(_, scale):
            return Decimal((int(ordinal < 0), tuple(map(int, str(abs(ordinal)))), -scale))
        case _:
            return ordinal


def _float(ordinal: int, integer: str, number: str, sign: int) -> float:
    bits = ordinal if ordinal >= 0 else -ordinal - 2**sign
    value: float = struct.unpack(number, struct.pack(integer, bits))[0]
    return value


def domain_of(states: States, space: Ordinals, dtype: DataType) -> Domain | None:
    """The domain of a set of states of a typed column; None where Python cannot name its values."""
    pairs = zip(states.cuts[::2], states.cuts[1::2], strict=True)
    try:
        ranges = [Range(_low(a, space, dtype), _high(b, space, dtype)) for a, b in pairs]
    except (OverflowError, ValueError):
        return None
    return Domain(ranges, states.null, states.nan)


def _low(cut: Cut, space: Ordinals, dtype: DataType) -> Marker:
    if cut == space.universe[0]:
        return Marker(None, Bound.ABOVE)
    if space.kind == "bytes" and cut.endswith(b"\0"):
        return Marker(natural(cut[:-1], dtype), Bound.ABOVE)
    return Marker(natural(cut, dtype), Bound.EXACTLY)


def _high(cut: Cut, space: Ordinals, dtype: DataType) -> Marker:
    if cut == space.universe[1]:
        return Marker(None, Bound.BELOW)
    if space.kind != "bytes":
        return Marker(natural(cut - 1, dtype), Bound.EXACTLY)
    if cut.endswith(b"\0"):
        return Marker(natural(cut[:-1], dtype), Bound.EXACTLY)
    return Marker(natural(cut, dtype), Bound.BELOW)


def is_own_value(value: Any, dtype: DataType) -> bool:
    """Whether a Python value is one of the column's own type, so that nothing need be coerced."""
    match dtype, value:
        case PrimitiveType("boolean"), bool():
            return True
        case _, bool():
            return False
        case PrimitiveType(name), int() if name in INTEGERS:
            return True
        case PrimitiveType(), float() | int() if is_float(dtype):
            return _fits_float(value, dtype)
        case PrimitiveType("string"), str():
            return True
        case PrimitiveType("binary"), bytes():
            return True
        case PrimitiveType("timestamp" | "timestamp_ntz" as name), dt.datetime():
            return (value.tzinfo is not None) is (name == "timestamp")
        case PrimitiveType("date"), dt.date():
            return not isinstance(value, dt.datetime)
        case DecimalType(), Decimal() | int():
            return not is_nan(value)
        case _:
            return False


def _fits_float(value: float, dtype: DataType) -> bool:
    """Whether it is a double, or a float, without rounding: 2**53 + 1 is neither."""
    try:
        if dtype == PrimitiveType("double"):
            return float(value) == value
        return bool(natural(sortable_single(value), dtype) == value)
    except OverflowError:
        return False
