"""Finds partition columns in directory names such as `day=2024-01-01/city=Rome/`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow.parquet import FileMetaData

from indextables.core.prune.partitions import (
    NULL_DIRECTORY,
    decode_partition,
    partition_text,
    unescape_segment,
)
from indextables.core.types import DataType, PrimitiveType, schema_from_arrow, type_name
from indextables.errors import SchemaMismatchError


@dataclass(frozen=True, slots=True)
class HiveColumn:
    """A partition column that the path of every file names at the same depth."""

    name: str
    type: DataType


def hive_columns(keys: Sequence[str], wanted: pa.Schema | None = None) -> tuple[HiveColumn, ...]:
    """Returns the partition columns of these files; SchemaMismatchError if the files disagree about them."""
    pairs = [_pairs(key) for key in keys]
    names = [name for name, _ in pairs[0]] if pairs else []
    for key, found in zip(keys, pairs, strict=True):
        if [name for name, _ in found] != names:
            raise SchemaMismatchError(
                f"the directories of {keys[0]!r} and {key!r} name different partition columns",
                hint="every file must lie below the same name=value directories",
                files=(keys[0], key),
            )
    types = {f.name.lower(): f.type for f in schema_from_arrow(wanted)} if wanted else {}
    if unknown := types.keys() - {name.lower() for name in names}:
        raise SchemaMismatchError(
            f"partition_schema has {sorted(unknown)}, which no directory names",
            hint=f"the directories name {names}"
            if names
            else "no file lies below a name=value directory",
        )
    return tuple(
        HiveColumn(name, types.get(name.lower()) or _infer([found[i][1] for found in pairs]))
        for i, name in enumerate(names)
    )


def hive_values(key: str, columns: Sequence[HiveColumn]) -> dict[str, str | None]:
    """Returns the partition values of one file as the log spells them."""
    values: dict[str, str | None] = {}
    for column, (_, text) in zip(columns, _pairs(key), strict=True):
        physical = decode_partition(text, column.type) if text else None
        if text and physical is None:
            raise SchemaMismatchError(
                f"{text!r} in {key!r} is not a {type_name(column.type)}",
                hint="give the column another type in partition_schema",
                column=column.name,
            )
        values[column.name] = partition_text(physical, column.type)
    return values


def _pairs(key: str) -> list[tuple[str, str | None]]:
    found = []
    for segment in key.split("/")[:-1]:
        name, equals, text = segment.partition("=")
        if equals and name:
            value = None if text == NULL_DIRECTORY else unescape_segment(text)
            found.append((unescape_segment(name), value))
    return found


def _infer(texts: Sequence[str | None]) -> DataType:
    """Returns the narrowest type in which every value keeps its spelling: '007' stays a text."""
    known = [text for text in texts if text]
    for name in ("integer", "long", "date"):
        kind = PrimitiveType(name)
        decoded = [decode_partition(text, kind) for text in known]
        if known and all(
            value is not None and partition_text(value, kind) == text
            for value, text in zip(decoded, known, strict=True)
        ):
            return kind
    return PrimitiveType("string")


# INT96, the timestamp of old Spark, Hive and Impala, is an instant in UTC although Arrow shows it without a zone.


def arrow_schema_of(metadata: FileMetaData) -> pa.Schema:
    """Returns the file's Arrow schema, with INT96 columns as UTC timestamps in microseconds."""
    schema = metadata.schema.to_arrow_schema()
    columns = range(metadata.num_columns)
    kinds = iter([metadata.schema.column(i).physical_type for i in columns])
    return pa.schema([_retyped(field, kinds) for field in schema])


def _retyped(field: pa.Field, kinds: Iterator[str]) -> pa.Field:
    return field.with_type(_retyped_type(field.type, kinds))


def _retyped_type(kind: pa.DataType, kinds: Iterator[str]) -> pa.DataType:
    """Returns the type with INT96 leaves changed; leaves come in the file's order, as their physical types do."""
    if isinstance(kind, pa.BaseExtensionType):
        return _retyped_type(kind.storage_type, kinds)
    if pa.types.is_struct(kind):
        return pa.struct([_retyped(kind.field(i), kinds) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        key = _retyped(kind.key_field, kinds)
        return pa.map_(key, _retyped(kind.item_field, kinds))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_retyped(kind.value_field, kinds))
    return pa.timestamp("us", "UTC") if next(kinds) == "INT96" else kind
