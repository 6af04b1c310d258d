"""Partition values: text in the log, typed by the schema, one for all rows of a split."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats.columns import FileMask, as_array, as_mask, is_null
from indextables.core.stats.values import OMIT, Physical, decode_value, encode_value, index_type
from indextables.core.types import (
    INTEGERS,
    DataType,
    DecimalType,
    PrimitiveType,
    type_name,
    type_to_arrow,
)
from indextables.errors import LogCorruptedError, SchemaMismatchError

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
    """Returns the values of a partition column; one that does not decode may be anything, NULL too."""
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
    """Returns the physical value a partition's text spells, as we, Spark and Delta write it.

    None = unknown.
    """
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
    """Returns what a reader puts into the column: None for NULL, which is also what Spark's empty text means.

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


# Which rows share partition values, how the log spells them, which directory they go to.

NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
_LONGEST: Final = 240
# Spark's own list, and every control character: keys must not hold any.
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\"#%'*/:=?\\{\[\]^]")


def escape_segment(text: str) -> str:
    """Returns the text as part of a directory name, escaped as Spark escapes it.

    Examples:
        >>> escape_segment("a/b=50%")
        'a%2Fb%3D50%25'
    """
    return _ESCAPED.sub(lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), text)


def unescape_segment(text: str) -> str:
    """Returns the inverse of `escape_segment`; a stray % stays as it is.

    Examples:
        >>> unescape_segment("a%2Fb%3D50%25 %zz")
        'a/b=50% %zz'
    """
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode(errors="replace")


def partition_directory(values: Mapping[str, str | None]) -> str:
    """Returns the directories of one partition, ending in '/'; empty for an unpartitioned table.

    Examples:
        >>> partition_directory({"day": "2024-01-01", "city": None})
        'day=2024-01-01/city=__HIVE_DEFAULT_PARTITION__/'
    """
    return "".join(
        _shortened(f"{escape_segment(name)}={NULL_DIRECTORY if text is None else escape_segment(text)}")
        + "/"
        for name, text in values.items()
    )


def _shortened(segment: str) -> str:
    """Returns a name every file system takes (255 bytes); the value itself is in the log, whole."""
    raw = segment.encode()
    if len(raw) <= _LONGEST:
        return segment
    return f"{raw[: _LONGEST - 20].decode(errors='ignore')}~{hashlib.sha256(raw).hexdigest()[:16]}"


def partition_text(physical: Any, kind: DataType) -> str | None:
    """Returns how the log spells a partition value: the text of its statistics encoding.

    Empty is NULL.
    """
    if physical is None or physical in ("", b""):
        return None
    if isinstance(physical, float) and physical != physical:  # noqa: PLR0124 - NaN
        return "NaN"
    encoded = encode_value(physical, kind)
    if encoded is OMIT:
        raise SchemaMismatchError(
            f"{physical!r} cannot be the {type_name(kind)} value of a partition",
            hint="dates and timestamps of partitions lie in the years 1 to 9999",
        )
    return str(encoded).lower() if isinstance(encoded, bool) else str(encoded)


def partition_scalar(text: str | None, kind: DataType) -> pa.Scalar:
    """Returns the value a partition's text stands for.

    LogCorruptedError if it is no value of that type.
    """
    return pa.scalar(partition_value(text, kind), type_to_arrow(kind))


def group_rows(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yields (values, rows) for each distinct combination, with rows in their order.

    Every row is in exactly one group.
    """
    if not columns:
        yield (), batch
        return
    arrays = [_canonical(batch.column(name)) for name in columns]
    codes = _codes(arrays)
    order = np.argsort(codes, kind="stable")
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    rest = batch.select([name for name in batch.schema.names if name not in columns])
    for rows in np.split(order, cuts):
        yield tuple(array[int(rows[0])] for array in arrays), rest.take(pa.array(rows))


def _canonical(array: pa.Array) -> pa.Array:
    """Returns values that name the same partition made equal: the empty text is NULL, -0.0 is 0.0."""
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        empty = pc.equal(pc.binary_length(array), 0)
        return pc.if_else(empty, pa.scalar(None, array.type), array)
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.equal(array, 0.0), pa.scalar(0.0, array.type), array)
    return array


def _codes(arrays: Sequence[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns one number per row, equal exactly for rows with equal values."""
    codes: np.ndarray[Any, np.dtype[np.int64]] | None = None
    for array in arrays:
        encoded = array.dictionary_encode(null_encoding="encode")
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if codes is None:
            codes = indices
            continue
        # renumbered after each column, so that the product cannot overflow
        _, codes = np.unique(codes * max(len(encoded.dictionary), 1) + indices, return_inverse=True)
    assert codes is not None
    return codes
