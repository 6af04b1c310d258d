"""Arrays in the table's own types: widened, decoded, nested fields by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.partitions import partition_value
from indextables.core.stats.values import OMIT, encode_value
from indextables.core.types import (
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    type_name,
    type_to_arrow,
)
from indextables.errors import SchemaMismatchError


def align(array: pa.Array, target: DataType) -> pa.Array:
    """The same values as the table's type: widened, decoded, nested fields by name, absent ones NULL."""
    wanted = type_to_arrow(target)
    if array.type == wanted:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if pa.types.is_dictionary(array.type):
        return align(array.dictionary_decode(), target)
    if pa.types.is_run_end_encoded(array.type):
        return align(pc.run_end_decode(array), target)
    if isinstance(array, pa.ExtensionArray):
        return align(array.storage, target)
    match target:
        case StructType():
            return _align_struct(array, target)
        case ListType():
            return _align_list(array, target)
        case MapType():
            return _align_map(array, target)
        case PrimitiveType() | DecimalType():
            return array.cast(wanted)
        case _:
            assert_never(target)


def _align_struct(array: pa.Array, target: StructType) -> pa.Array:
    theirs = {array.type.field(i).name.lower(): i for i in range(array.type.num_fields)}
    children = []
    for field in target:
        found = theirs.get(field.name.lower())
        # struct_field, not .field(): it keeps the parent's offset and hides values under NULL parents
        child = pa.nulls(len(array)) if found is None else pc.struct_field(array, [found])
        children.append(align(child, field.type))
    fields = [type_to_arrow(target).field(i) for i in range(len(target.fields))]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _align_list(array: pa.Array, target: ListType) -> pa.Array:
    # rebuilt from the lengths: true for lists, views, large and fixed-size lists, sliced or not
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = align(array.flatten(), target.element)
    kind = type_to_arrow(target)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind, mask=array.is_null())


def _align_map(array: pa.Array, target: MapType) -> pa.Array:
    return pa.MapArray.from_arrays(
        _offsets(array),
        align(array.keys, target.key),
        align(array.items, target.value),
        type=type_to_arrow(target),
        mask=array.is_null(),
    )


def _offsets(array: pa.Array) -> pa.Array:
    # a copy that starts at 0: Arrow refuses a mask together with sliced offsets
    return pa.array(array.offsets.to_numpy(zero_copy_only=False).copy(), pa.int32())


# Partition values: which rows share them, how the log spells them, which directory they go to.

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
