"""Partition columns from directory names such as `day=2024-01-01/city=Rome/`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from indextables.core.prune.partitions import decode_partition
from indextables.core.types import DataType, PrimitiveType, schema_from_arrow, type_name
from indextables.errors import SchemaMismatchError
from indextables.parquet.read.align import NULL_DIRECTORY, partition_text, unescape_segment


@dataclass(frozen=True, slots=True)
class HiveColumn:
    """A partition column that every file's path names at the same depth."""

    name: str
    type: DataType


def hive_columns(keys: Sequence[str], wanted: pa.Schema | None = None) -> tuple[HiveColumn, ...]:
    """The partition columns of these files; SchemaMismatchError if they do not agree on them."""
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
    """The partition values of one file, as the log spells them."""
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
    """The narrowest type that spells every value exactly as found: '007' stays a text."""
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
