"""One bound from a Parquet footer, as the table's type compares it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from indextables.core.stats.values import Physical, Round, decode_value
from indextables.core.types import DataType, DecimalType, PrimitiveType

_MICROS_PER_DAY: Final = 86_400_000_000
_MICROS: Final = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
"""Microseconds per unit, as a fraction."""
_ARROW_TEXT: Final = frozenset(
    (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """Where a leaf's column chunks are in every row group, and the type the file gives it."""

    index: int
    type: Any
    repeated: bool
    column: Any

    @property
    def required(self) -> bool:
        """Whether Parquet itself rules NULL out."""
        return bool(self.column.max_definition_level == 0)


def bound_of(stats: Any, chunk: ColumnChunk, dtype: DataType, side: Round) -> Physical | None:
    """A bound of the file as the table's type compares it; None where the two types do not meet."""
    # Not .min and .max: they raise for years outside 1-9999 and for bytes that are no text.
    kind, raw = chunk.type, stats.min_raw if side == "down" else stats.max_raw
    match dtype:
        case PrimitiveType("timestamp" | "timestamp_ntz" as name) if pa.types.is_timestamp(kind):
            return _micros(raw, chunk, side) if (name == "timestamp") is bool(kind.tz) else None
        case PrimitiveType("timestamp_ntz") if pa.types.is_date32(kind):
            return int(raw) * _MICROS_PER_DAY
        case PrimitiveType("date") if pa.types.is_date32(kind):
            return int(raw)
        case PrimitiveType("boolean") if pa.types.is_boolean(kind):
            return bool(raw)
        case PrimitiveType("float") if pa.types.is_float32(kind):
            return float(raw)
        case PrimitiveType("double") if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return float(raw)
        case PrimitiveType("string") if _is_text(kind):
            return _text(raw)
        case PrimitiveType("binary") if _is_text(kind):
            return bytes(raw)
        case DecimalType() if pa.types.is_decimal(kind):
            return decode_value(f"{stats.min if side == 'down' else stats.max:f}", dtype, side)
        case DecimalType() | PrimitiveType() if pa.types.is_integer(kind):
            return decode_value(_integer(raw, kind), dtype, side)
        case _:
            return None


def _is_text(kind: Any) -> bool:
    return kind in _ARROW_TEXT or pa.types.is_fixed_size_binary(kind)


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _integer(raw: int, kind: Any) -> int:
    # The footer holds an unsigned number in a signed type.
    is_unsigned = pa.types.is_unsigned_integer(kind)
    return int(raw) % 2**kind.bit_width if is_unsigned else int(raw)


def _micros(raw: int, chunk: ColumnChunk, side: Round) -> int | None:
    # Not the Arrow type's unit: Parquet has no seconds, and a hint in the file may still say so.
    unit = json.loads(chunk.column.logical_type.to_json()).get("timeUnit")
    if unit not in _MICROS:
        return None
    numerator, denominator = _MICROS[unit]
    scaled = raw * numerator
    return scaled // denominator if side == "down" else -(-scaled // denominator)
