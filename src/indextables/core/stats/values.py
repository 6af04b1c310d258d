"""Values in statistics: their Python and Arrow types, and how a whole column of bounds is decoded.

A *physical* value is the Python value by which two values of one type are compared: an int for integers,
dates (days) and timestamps (microseconds), else a bool, float, Decimal, str or bytes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats.wire import (
    DATE_PATTERN,
    EPOCH_ORDINAL,
    FIRST_DAY,
    FIRST_MICRO,
    LAST_DAY,
    LAST_MICRO,
    NUMBER_PATTERN,
    OMIT,
    TIMESTAMP_PATTERN,
    Omit,
    Physical,
    Round,
    decode_value,
    decoder,
    encode_value,
    encoder,
    snap_to_single,
)
from indextables.core.types.types import (
    INTEGERS,
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    type_name,
)

__all__ = [
    "OMIT",
    "Omit",
    "Physical",
    "Round",
    "decode_column",
    "decode_value",
    "decoder",
    "encode_value",
    "encoder",
    "index_type",
    "to_physical",
    "wire_type",
]

_Cast: TypeAlias = Callable[[pa.Array], pa.Array]
_EPOCH_UTC: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO: Final = dt.timedelta(microseconds=1)
_ONE_BY_ONE: Final = 256
"""For this many values or fewer, decoding each is cheaper than halving further."""


def index_type(dtype: DataType) -> pa.DataType:
    """Returns the Arrow type in which bounds of this type are compared; null if it has no bounds."""
    match dtype:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case PrimitiveType("string"):
            return pa.large_string()
        case PrimitiveType("binary"):
            return pa.large_binary()
        case PrimitiveType("float" | "double"):
            return pa.float64()
        case PrimitiveType("variant") | ListType() | MapType() | StructType():
            return pa.null()
        case PrimitiveType():
            return pa.int64()
        case _:
            assert_never(dtype)


def wire_type(dtype: DataType) -> pa.DataType:
    """Returns the Arrow type that a bound of this type has in a parsed action."""
    match dtype:
        case PrimitiveType(name) if name in INTEGERS:
            return pa.int64()
        case PrimitiveType("boolean"):
            return pa.bool_()
        case PrimitiveType("float" | "double"):
            return pa.float64()
        case _:
            return pa.string()


def to_physical(value: object, dtype: DataType) -> Physical:
    """Returns the physical value of an ordinary Python value.

    Raises ValueError or TypeError if the value does not have this type.
    """
    match dtype, value:
        case PrimitiveType("date"), dt.date() if not isinstance(value, dt.datetime):
            return value.toordinal() - EPOCH_ORDINAL
        case PrimitiveType("timestamp"), dt.datetime() if value.tzinfo is not None:
            return (value - _EPOCH_UTC) // _MICRO
        case PrimitiveType("timestamp_ntz"), dt.datetime() if value.tzinfo is None:
            return (value - _EPOCH_UTC.replace(tzinfo=None)) // _MICRO
        case PrimitiveType("boolean"), bool():
            return value
        case PrimitiveType("float" | "double"), float() | int() if not isinstance(value, bool):
            return float(value)
        case PrimitiveType("string"), str():
            return value
        case PrimitiveType("binary"), bytes() | bytearray() | memoryview():
            return bytes(value)
        case PrimitiveType(name), int() if _holds_int(name) and not isinstance(value, bool):
            return value
        case DecimalType(), Decimal() | int() if not isinstance(value, bool):
            return Decimal(value)
        case _:
            raise TypeError(f"{value!r} is not a value of type {type_name(dtype)}")


def _holds_int(name: str) -> bool:
    return name in INTEGERS or name in {"date", "timestamp", "timestamp_ntz"}


def decode_column(
    wire: pa.Array | pa.ChunkedArray,
    dtype: DataType,
    round: Round,  # noqa: A002
) -> pa.Array:
    """Returns `decode_value` of each value, as one array of `index_type`; null means unknown."""
    array = wire.combine_chunks() if isinstance(wire, pa.ChunkedArray) else wire
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    cast = _cast_for(array.type, dtype, round)
    if cast is None:
        return pa.nulls(len(array), index_type(dtype))
    try:
        return cast(array)
    except pa.ArrowException:
        readable = _grammatical(array, dtype)
        return _halving(readable, cast, lambda half: _one_by_one(half, dtype, round))


def _cast_for(wire: pa.DataType, dtype: DataType, round_: Round) -> _Cast | None:
    """Returns the cast from this Arrow type to bounds of this type; None if the pair means nothing.

    The values may have an older, narrower type, because the column was widened since.
    """
    is_text = pa.types.is_string(wire) or pa.types.is_large_string(wire)
    match dtype:
        case PrimitiveType(name) if name in INTEGERS and pa.types.is_integer(wire):
            return _plain(pa.int64())
        case PrimitiveType("boolean") if pa.types.is_boolean(wire):
            return _plain(pa.int64())
        case PrimitiveType("float" | "double" as name) if pa.types.is_floating(wire):
            return lambda a: _floats(a, round_, single=name == "float")
        case PrimitiveType("float" | "double") | DecimalType() if pa.types.is_integer(wire):
            return lambda a: _widened(a, dtype, round_)
        case DecimalType() | PrimitiveType("string") if is_text:
            return _plain(index_type(dtype))
        case PrimitiveType("date") if is_text:
            return lambda a: _in_years(a.cast(pa.date32()).cast(pa.int32()), FIRST_DAY, LAST_DAY)
        case PrimitiveType("timestamp" | "timestamp_ntz" as name) if is_text:
            instant = pa.timestamp("us", "UTC" if name == "timestamp" else None)
            return lambda a: _in_years(a.cast(instant), FIRST_MICRO, LAST_MICRO)
        case PrimitiveType("binary" | "float" | "double") if is_text:
            return lambda a: _one_by_one(a, dtype, round_)
        case _:
            return None


def _plain(target: pa.DataType) -> _Cast:
    return lambda array: array.cast(target)


def _floats(array: pa.Array, round_: Round, *, single: bool) -> pa.Array:
    values = array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    if single:
        values = snap_to_single(values, round_)
    return pa.array(values, mask=np.isnan(values))


def _widened(array: pa.Array, dtype: DataType, round_: Round) -> pa.Array:
    """Returns integers as the type to which the column was widened; Arrow refuses what a double cannot hold."""
    if isinstance(dtype, DecimalType):
        # Arrow demands a decimal wide enough for any 64-bit integer, whatever the values are.
        return array.cast(pa.decimal128(38, dtype.scale)).cast(index_type(dtype))
    return _floats(array.cast(pa.float64()), round_, single=dtype == PrimitiveType("float"))


def _in_years(array: pa.Array, first: int, last: int) -> pa.Array:
    values = array.cast(pa.int64())
    inside = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
    return pc.if_else(inside, values, pa.scalar(None, pa.int64()))


def _grammatical(array: pa.Array, dtype: DataType) -> pa.Array:
    """Returns the texts that look like values of the type, and null for the others."""
    match dtype:
        case PrimitiveType("date"):
            pattern = DATE_PATTERN
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            pattern = TIMESTAMP_PATTERN
        case DecimalType():
            pattern = NUMBER_PATTERN
        case _:
            return array
    if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        return array
    fits = pc.match_substring_regex(array, f"^(?:{pattern})$")
    return pc.if_else(fits, array, pa.scalar(None, array.type))


def _one_by_one(array: pa.Array, dtype: DataType, round_: Round) -> pa.Array:
    decode = decoder(dtype, round_)
    values = [None if value is None else decode(value) for value in array.to_pylist()]
    return pa.array([int(v) if isinstance(v, bool) else v for v in values], index_type(dtype))


def _halving(array: pa.Array, cast: _Cast, slow: _Cast) -> pa.Array:
    """Returns the result of `cast`, halving the array until only values near those it refuses go to `slow`."""
    try:
        return cast(array)
    except pa.ArrowException:
        if len(array) <= _ONE_BY_ONE:
            return slow(array)
    middle = len(array) // 2
    halves = (array.slice(0, middle), array.slice(middle))
    return pa.concat_arrays([_halving(half, cast, slow) for half in halves])
