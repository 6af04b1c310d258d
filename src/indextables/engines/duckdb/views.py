"""A plan as SQL: DuckDB's own Parquet reader over the splits that it reads right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from indextables.core.prune.partitions import partition_text, partition_value
from indextables.core.types import (
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
)
from indextables.engines.native_files import NativeGroup

_NAMES: Final = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "string": "VARCHAR",
    "binary": "BLOB",
    "variant": 'STRUCT("value" BLOB, "metadata" BLOB)',
}
_AS_STORED: Final = ("integer", "long", "float", "double", "string", "date")
"""Types that need no cast, because every Parquet file stores them in the way DuckDB reads; a cast is bound thrice."""


def quoted(name: str) -> str:
    """Returns a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Returns a value as a string literal."""
    return "'" + value.replace("'", "''") + "'"


def type_of(dtype: DataType) -> str:
    """Returns DuckDB's name of a type.

    >>> type_of(ListType(DecimalType(5, 2)))
    'DECIMAL(5,2)[]'
    """
    match dtype:
        case PrimitiveType(name):
            return _NAMES[name]
        case DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case ListType(element):
            return f"{type_of(element)}[]"
        case MapType(key, value):
            return f"MAP({type_of(key)}, {type_of(value)})"
        case StructType(fields):
            return f"STRUCT({', '.join(f'{quoted(f.name)} {type_of(f.type)}' for f in fields)})"
        case _:
            assert_never(dtype)


def select_of(groups: list[NativeGroup], schema: StructType, rest: str | None) -> str:
    """Returns a SELECT of the table's columns from these files, and from the relation `rest` if there is one."""
    parts = [_scan(group, schema) for group in groups]
    if rest is not None:
        names = ", ".join(map(quoted, schema.names))
        parts.append(f"SELECT {names} FROM {quoted(rest)}")  # noqa: S608 - quoted
    if not parts:
        columns = (f"CAST(NULL AS {type_of(f.type)}) AS {quoted(f.name)}" for f in schema)
        return f"SELECT {', '.join(columns)} WHERE false"
    return " UNION ALL ".join(parts)


def _scan(group: NativeGroup, schema: StructType) -> str:
    files = ", ".join(map(text, group.paths))
    columns = ", ".join(_columns(group, schema))
    return f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning = false)"  # noqa: S608 - quoted


def _columns(group: NativeGroup, schema: StructType) -> Iterator[str]:
    for field in schema:
        stored = group.stored(field)
        if field.name in group.partition_values:
            source = _constant(group.partition_values[field.name], field)
        elif stored is None:
            source = "NULL"
        elif stored.type == field.type and getattr(field.type, "name", None) in _AS_STORED:
            yield quoted(field.name)
            continue
        else:
            source = quoted(field.name)
        yield f"CAST({source} AS {type_of(field.type)}) AS {quoted(field.name)}"


def _constant(stored: str | None, field: Field) -> str:
    """Returns a partition's value as SQL; instants with their zone, because DuckDB has a time zone of its own."""
    physical = partition_value(stored, field.type)
    spelled = None if physical is None else partition_text(physical, field.type)
    if spelled is None:
        return "NULL"
    return f"from_base64({text(spelled)})" if field.type == PrimitiveType("binary") else text(spelled)
