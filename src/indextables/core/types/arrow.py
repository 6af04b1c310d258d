"""Conversion of schemas to and from Arrow."""

from __future__ import annotations

from typing import Final, assert_never

import pyarrow as pa

from indextables.core.types.types import (
    DataType,
    DecimalType,
    Field,
    FieldPath,
    ListType,
    MapType,
    PrimitiveName,
    PrimitiveType,
    StructType,
    path_text,
)
from indextables.errors import UnsupportedTypeError

MAX_LEVELS: Final = 64
"""How deep a type may be nested, counted as Parquet counts it.

Arrow writes any depth and reads 100 levels, and a part of a checkpoint adds a few around each column.
"""


def check_levels(schema: StructType) -> None:
    """Raises UnsupportedTypeError for a column nested so deep that its rows could be written but never read."""
    for field in schema:
        waiting: list[tuple[DataType, int]] = [(field.type, 1)]
        while waiting:  # a loop, since a schema from a file may be as deep as it likes
            kind, level = waiting.pop()
            if level > MAX_LEVELS:
                raise _too_deep(field.name)
            waiting.extend(_below(kind, level))


def check_arrow_levels(schema: pa.Schema) -> None:
    """Raises UnsupportedTypeError for a column of an Arrow schema that is nested too deep to be read."""
    for field in schema:
        waiting = [(field.type, 1)]
        while waiting:
            kind, level = waiting.pop()
            if level > MAX_LEVELS:
                raise _too_deep(field.name)
            step = 1 if pa.types.is_struct(kind) else 2
            waiting.extend((kind.field(i).type, level + step) for i in range(kind.num_fields))


def _below(kind: DataType, level: int) -> list[tuple[DataType, int]]:
    match kind:
        case StructType(fields):
            return [(field.type, level + 1) for field in fields]
        case ListType(element=element):
            return [(element, level + 2)]
        case MapType(key=key, value=value):
            return [(key, level + 2), (value, level + 2)]
        case PrimitiveType() | DecimalType():
            return []
        case _:
            assert_never(kind)


def _too_deep(column: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"column {column!r} is nested deeper than {MAX_LEVELS} levels, the most that a table can hold",
        hint="a struct counts as one level, a list or a map as two: store the inner fields as JSON text",
        column=column,
    )


_TO_ARROW: Final[dict[PrimitiveName, pa.DataType]] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "variant": pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False),
        ]
    ),
}
# Every value of the Arrow type is also a value of the type on the right.
_FROM_ARROW: Final[dict[pa.DataType, PrimitiveName]] = {
    **{arrow: name for name, arrow in _TO_ARROW.items() if name != "variant"},
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.float16(): "float",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}
_HINTS: Final = (
    (pa.types.is_uint64, "cast it to decimal(20,0), or to int64 if its values fit"),
    (pa.types.is_time, "cast it to int64 or to a string"),
    (pa.types.is_duration, "cast it to int64"),
    (pa.types.is_interval, "cast it to int64 or to a string"),
    (pa.types.is_timestamp, "cast it to timestamp('us'), which refuses values that do not fit"),
    (pa.types.is_date64, "cast it to date32"),
    (pa.types.is_null, "cast it to the type it should have, for example string"),
    (pa.types.is_decimal, "at most 38 digits fit: cast it to a smaller decimal or to a string"),
    (pa.types.is_struct, "a struct needs at least one field, and each name once"),
)


def schema_to_arrow(schema: StructType) -> pa.Schema:
    """Returns the Arrow schema of a split that holds these columns."""
    return pa.schema([_arrow_field(f) for f in schema])


def _arrow_field(f: Field) -> pa.Field:
    return pa.field(f.name, type_to_arrow(f.type), nullable=f.nullable)


def type_to_arrow(dtype: DataType) -> pa.DataType:
    """Returns the Arrow type that every split uses for this type."""
    match dtype:
        case PrimitiveType(name):
            return _TO_ARROW[name]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ListType(element, contains_null):
            return pa.list_(pa.field("element", type_to_arrow(element), nullable=contains_null))
        case MapType(key, value, contains_null):
            item = pa.field("value", type_to_arrow(value), nullable=contains_null)
            return pa.map_(pa.field("key", type_to_arrow(key), nullable=False), item)
        case StructType(fields):
            return pa.struct([_arrow_field(f) for f in fields])
        case _:
            assert_never(dtype)


def schema_from_arrow(schema: pa.Schema) -> StructType:
    """Returns the table schema that holds every value this Arrow schema allows.

    Raises UnsupportedTypeError if there is none.
    """
    check_arrow_levels(schema)
    return _struct_from_arrow(list(schema), ())


def _struct_from_arrow(fields: list[pa.Field], path: FieldPath) -> StructType:
    return StructType(
        tuple(Field(f.name, _from_arrow(f.type, (*path, f.name)), f.nullable) for f in fields)
    )


def _from_arrow(arrow: pa.DataType, path: FieldPath) -> DataType:
    if (name := _FROM_ARROW.get(arrow)) is not None:
        return PrimitiveType(name)
    if pa.types.is_timestamp(arrow) and arrow.unit != "ns":
        return PrimitiveType("timestamp" if arrow.tz else "timestamp_ntz")
    if pa.types.is_fixed_size_binary(arrow):
        return PrimitiveType("binary")
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return _from_arrow(arrow.value_type, path)
    if pa.types.is_map(arrow):
        key, value = _from_arrow(arrow.key_type, path), _from_arrow(arrow.item_type, path)
        return MapType(key, value, arrow.item_field.nullable)
    if _is_list(arrow):
        return ListType(_from_arrow(arrow.value_type, path), arrow.value_field.nullable)
    if pa.types.is_struct(arrow) and len(arrow):
        return _struct_from_arrow(list(arrow), path)
    decimal = _decimal_from_arrow(arrow) if pa.types.is_decimal(arrow) else None
    return decimal or _unsupported(arrow, path)


def _is_list(arrow: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(
        is_kind(arrow) for is_kind in (*kinds, pa.types.is_list_view, pa.types.is_large_list_view)
    )


def _decimal_from_arrow(arrow: pa.DataType) -> DecimalType | None:
    # Arrow allows a scale below zero or above the precision; SQL allows neither, so make room for the zeros.
    scale = max(arrow.scale, 0)
    precision = max(arrow.precision - min(arrow.scale, 0), scale)
    return DecimalType(precision, scale) if precision <= 38 else None


def _unsupported(arrow: pa.DataType, path: FieldPath) -> DataType:
    if isinstance(arrow, pa.BaseExtensionType):
        storage = arrow.storage_type
        _from_arrow(storage, path)  # raises its own hint if that does not help either
        hint = f"cast it to the type it is stored as, {storage}"
    else:
        hint = next((text for is_kind, text in _HINTS if is_kind(arrow)), "leave the column out")
    raise UnsupportedTypeError(
        f"column {path_text(path)!r} has the Arrow type {arrow}, which a table cannot hold",
        hint=hint,
        column=path_text(path),
        type=str(arrow),
    )
