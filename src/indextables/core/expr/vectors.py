"""Columns of rows as ordinals, and back: the form in which functions compute."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.expr.image import Array, Mask
from indextables.core.states import Ordinals, space_of
from indextables.core.types import DataType, DecimalType, PrimitiveType, is_float, type_to_arrow

Integers: TypeAlias = Any

_TEXTS: Final = (PrimitiveType("string"), PrimitiveType("binary"))


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """Values of one type, one a row: ordinals, or an Arrow array for text and binary.

    What stands where a mask is True means nothing. An error is what Spark would raise.
    """

    type: DataType
    values: Any
    null: Mask
    nan: Mask
    error: Mask

    def with_masks(self, *, null: Mask | None = None, error: Mask | None = None) -> Vector:
        """Returns the same values with more rows that are NULL or raise."""
        wider = self if null is None else replace(self, null=self.null | null)
        return wider if error is None else replace(wider, error=wider.error | error)


def is_text(dtype: DataType) -> bool:
    """Returns whether values of this type are bytes, not integers."""
    return dtype in _TEXTS


def is_wide(dtype: DataType) -> bool:
    """Returns whether 64 bits are too few for the ordinals of this type."""
    return isinstance(dtype, DecimalType) and dtype.precision > 18


def vector_of(column: Any, dtype: DataType) -> Vector:
    """Returns an Arrow column of a table as a vector."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    nowhere = np.zeros(len(array), np.bool_)
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else nowhere
    if is_text(dtype):
        return Vector(dtype, array, null, nowhere, nowhere)
    nan = nowhere
    if is_float(dtype) and len(array):
        nan = pc.fill_null(pc.is_nan(array), False).to_numpy(zero_copy_only=False)
    return Vector(dtype, _ordinals(array, dtype), null, nan, nowhere)


def _ordinals(array: Any, dtype: DataType) -> Array:
    match dtype:
        case DecimalType(precision, scale):
            plain = array.cast(pa.decimal128(precision, scale)).fill_null(0)
            words = decimal_words(plain)
            if not is_wide(dtype):
                return words[:, 0].copy()
            return words[:, 1].astype(object) * 2**64 + words[:, 0].view(np.uint64).astype(object)
        case PrimitiveType("boolean"):
            return array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
        case PrimitiveType("float" | "double"):
            return float_ordinals(array.fill_null(0.0).to_numpy(zero_copy_only=False), space_of(dtype))
        case PrimitiveType("date"):
            return _plain(array.cast(pa.int32()))
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return _plain(array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()))
        case _:
            return _plain(array)


def _plain(array: Any) -> Array:
    return array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def decimal_words(decimals: Any) -> Integers:
    """Returns the two 64-bit words of each 128-bit decimal, the low one first."""
    words = np.frombuffer(decimals.buffers()[1] or b"", np.int64)
    start = 2 * decimals.offset
    return words[start : start + 2 * len(decimals)].reshape(-1, 2)


def float_ordinals(numbers: Any, space: Ordinals) -> Integers:
    """Returns integers that sort as the numbers do, NaN aside; both zeros are 0."""
    if space.kind == "single":
        bits = (numbers.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & (2**31 - 1)), bits)
    wide = (numbers.astype(np.float64) + 0.0).view(np.int64)
    return np.where(wide < 0, -(wide & (2**63 - 1)), wide)


def floats_of(ordinals: Any, space: Ordinals) -> Any:
    """Returns the numbers these integers stand for."""
    if space.kind == "single":
        bits = np.where(ordinals < 0, -ordinals + 2**31, ordinals)
        return bits.astype(np.uint32).view(np.float32)
    negative = ordinals < 0
    magnitude = np.where(negative, -ordinals, ordinals).astype(np.uint64)
    sign = np.where(negative, np.uint64(2**63), np.uint64(0))
    return (magnitude | sign).view(np.float64)


def column_of(vector: Vector) -> Any:
    """Returns the vector as an Arrow array; rows that raise are NULL."""
    null = vector.null | vector.error
    if is_text(vector.type):
        return pc.if_else(pa.array(~null), vector.values, pa.scalar(None, vector.values.type))
    target = type_to_arrow(vector.type)
    match vector.type:
        case DecimalType(_, scale):
            return _decimals(vector.values, null, target, scale)
        case PrimitiveType("boolean"):
            return pa.array(vector.values != 0, mask=null)
        case PrimitiveType("float" | "double"):
            numbers = floats_of(vector.values, space_of(vector.type))
            return pa.array(np.where(vector.nan, np.nan, numbers), target, mask=null)
        case PrimitiveType("date"):
            return pa.array(vector.values.astype(np.int32), pa.int32(), mask=null).cast(target)
        case _:
            return pa.array(vector.values.astype(np.int64), pa.int64(), mask=null).cast(target)


def _decimals(values: Any, null: Mask, target: pa.DataType, scale: int) -> Any:
    words = np.empty((len(values), 2), np.int64)
    if values.dtype == object:
        words[:, 0] = np.array([int(v) & (2**64 - 1) for v in values], np.uint64).view(np.int64)
        words[:, 1] = np.array([int(v) >> 64 for v in values], np.int64)
    else:
        words[:, 0], words[:, 1] = values, np.where(values < 0, -1, 0)
    mask = pa.array(~null).buffers()[1]
    found = pa.Decimal128Array.from_buffers(
        pa.decimal128(38, scale), len(values), [mask, pa.py_buffer(words.tobytes())]
    )
    return found.cast(target)
