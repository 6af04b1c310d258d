"""Partition values: text in the log, typed by the schema, one for all rows of a split."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from indextables.core.prune.source import FileMask, as_array, as_mask, is_null
from indextables.core.stats.values import Physical, decode_value, index_type
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, type_name
from indextables.errors import LogCorruptedError

_INTEGER: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_FLOAT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOOLEANS: Final = {"true": True, "false": False}
_ZONE: Final = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$", re.ASCII)


class PartitionValues(NamedTuple):
    """The typed value of every split; null where it is NULL, NaN or does not decode."""

    values: Any
    may_null: FileMask
    may_nan: FileMask
    may_value: FileMask


def read_partition(text: Any, dtype: DataType) -> PartitionValues:
    """The values of a partition column; one that does not decode may be anything, NULL too."""
    encoded = as_array(text).dictionary_encode()
    distinct = [decode_partition(value, dtype) for value in encoded.dictionary.to_pylist()]
    is_nan = [isinstance(v, float) and math.isnan(v) for v in distinct]
    typed = [None if nan else _indexed(v) for v, nan in zip(distinct, is_nan, strict=True)]
    values = pa.array(typed, index_type(dtype)).take(encoded.indices)
    # The empty text is how Spark writes NULL into a path.
    empty = [value == "" for value in encoded.dictionary.to_pylist()]
    null = is_null(encoded.indices) | _each(empty, encoded.indices)
    nan = _each(is_nan, encoded.indices)
    unknown = is_null(values) & ~null & ~nan
    maybe_nan = unknown if dtype in _FLOATS else np.zeros_like(unknown)
    return PartitionValues(values, null | unknown, nan | maybe_nan, ~null & ~nan)


_FLOATS: Final = (PrimitiveType("float"), PrimitiveType("double"))


def _each(flags: list[bool], indices: Any) -> FileMask:
    return as_mask(pa.array(flags, pa.bool_()).take(indices))


def _indexed(value: Physical | None) -> Any:
    return int(value) if isinstance(value, bool) else value


def decode_partition(text: str, dtype: DataType) -> Physical | None:
    """The physical value a partition's text spells, as we, Spark and Delta write it; None = unknown."""
    match dtype:
        case PrimitiveType("string"):
            return text or None
        case PrimitiveType("boolean"):
            return _BOOLEANS.get(text.lower())
        case PrimitiveType(name) if name in INTEGERS:
            return _in_width(int(text), INTEGERS[name]) if _INTEGER.fullmatch(text) else None
        case PrimitiveType("float" | "double" as name):
            return _float(text, single=name == "float")
        case PrimitiveType("timestamp") if not _ZONE.search(text[10:]):
            return decode_value(text + "Z", dtype)
        case DecimalType() if not _FLOAT.fullmatch(text):
            return None
        case DecimalType():
            return decode_value(f"{Decimal(text):f}", dtype)
        case _:
            return decode_value(text, dtype)


def partition_value(text: str | None, dtype: DataType) -> Physical | None:
    """What a reader puts into the column: None for NULL, which is also what Spark's empty text means.

    LogCorruptedError where the text is no value of that type: a row with NULL instead would be a wrong row.
    """
    if not text:
        return None
    value = decode_partition(text, dtype)
    if value is None:
        raise LogCorruptedError(
            f"the partition value {text!r} is not a {type_name(dtype)}",
            hint="Table.check() lists the splits that have it",
            value=text,
        )
    return value


def _in_width(value: int, bits: int) -> int | None:
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _float(text: str, *, single: bool) -> float | None:
    if text in _WORDS:
        return _WORDS[text]
    if not _FLOAT.fullmatch(text):
        return None
    with np.errstate(over="ignore"):
        return float(np.float32(text)) if single else float(text)
