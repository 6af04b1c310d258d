"""Partition values: which rows share them, how the log spells them, which directory they go to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.partitions import partition_value
from indextables.core.stats.values import OMIT, encode_value
from indextables.core.types import DataType, type_name, type_to_arrow
from indextables.errors import SchemaMismatchError

NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
_LONGEST: Final = 240
# Spark's own list, and every control character: keys must not hold any.
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\"#%'*/:=?\\{\[\]^]")


def escape_segment(text: str) -> str:
    """The text as part of a directory name, escaped as Spark escapes it.

    Examples:
        >>> escape_segment("a/b=50%")
        'a%2Fb%3D50%25'
    """
    return _ESCAPED.sub(lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), text)


def unescape_segment(text: str) -> str:
    """The inverse of `escape_segment`; a stray % stays as it is.

    Examples:
        >>> unescape_segment("a%2Fb%3D50%25 %zz")
        'a/b=50% %zz'
    """
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode(errors="replace")


def partition_directory(values: Mapping[str, str | None]) -> str:
    """The directories of one partition, ending in '/'; empty for an unpartitioned table.

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
    """A name every file system takes (255 bytes); the value itself is in the log, whole."""
    raw = segment.encode()
    if len(raw) <= _LONGEST:
        return segment
    return f"{raw[: _LONGEST - 20].decode(errors='ignore')}~{hashlib.sha256(raw).hexdigest()[:16]}"


def partition_text(physical: Any, kind: DataType) -> str | None:
    """How the log spells a partition value: the text of its statistics encoding; empty is NULL."""
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
    """The value a partition's text stands for; LogCorruptedError if it is no value of that type."""
    return pa.scalar(partition_value(text, kind), type_to_arrow(kind))


def group_rows(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(values, rows) per distinct combination, rows in their order; every row is in exactly one group."""
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
    """Values that name the same partition made equal: the empty text is NULL, -0.0 is 0.0."""
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        empty = pc.equal(pc.binary_length(array), 0)
        return pc.if_else(empty, pa.scalar(None, array.type), array)
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.equal(array, 0.0), pa.scalar(0.0, array.type), array)
    return array


def _codes(arrays: Sequence[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """One number per row, equal exactly for rows with equal values."""
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
