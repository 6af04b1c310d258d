"""Arrow scalars as literals of conditions."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from indextables.core.predicate.nodes import Literal
from indextables.core.types import PrimitiveType

_PER_MICROSECOND: Final = {"s": 1_000_000, "ms": 1000, "us": 1}


def literal_of(scalar: Any) -> Literal | None:
    """The constant an Arrow scalar is; None for a type, or a nanosecond, that no column can hold."""
    kind = scalar.type
    if pa.types.is_dictionary(kind):
        return literal_of(scalar.value)
    if not scalar.is_valid:
        return Literal(None)
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar.value, kind)
    if pa.types.is_date32(kind):
        return Literal(scalar.value, PrimitiveType("date"))
    if pa.types.is_date64(kind):
        days, rest = divmod(scalar.value, 86_400_000)
        return Literal(days, PrimitiveType("date")) if rest == 0 else None
    return Literal(scalar.as_py()) if _is_plain(kind) else None


def _timestamp(value: int, kind: Any) -> Literal | None:
    dtype = PrimitiveType("timestamp" if kind.tz else "timestamp_ntz")
    if kind.unit == "ns":
        micros, rest = divmod(value, 1000)
        return Literal(micros, dtype) if rest == 0 else None
    return Literal(value * _PER_MICROSECOND[kind.unit], dtype)


def _is_plain(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )
