"""INT96, the timestamp of old Spark, Hive and Impala: an instant in UTC, whatever Arrow calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def arrow_schema_of(metadata: Any) -> pa.Schema:
    """The file's Arrow schema, with INT96 columns as UTC timestamps in microseconds."""
    schema = metadata.schema.to_arrow_schema()
    columns = range(metadata.num_columns)
    kinds = iter([metadata.schema.column(i).physical_type for i in columns])
    return pa.schema([_retyped(field, kinds) for field in schema])


def _retyped(field: pa.Field, kinds: Iterator[str]) -> pa.Field:
    return field.with_type(_retyped_type(field.type, kinds))


def _retyped_type(kind: pa.DataType, kinds: Iterator[str]) -> pa.DataType:
    """Visits leaves in the file's order, so that each meets its own physical type."""
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
