"""The type system under one name: types, the columns of a schema, and its Arrow and JSON forms."""

from indextables.core.types.arrow import schema_from_arrow, schema_to_arrow, type_to_arrow
from indextables.core.types.columns import Leaf, leaves, parse_path, path_text, resolve
from indextables.core.types.json import schema_from_json, schema_to_json
from indextables.core.types.types import (
    INTEGERS,
    DataType,
    DecimalType,
    Field,
    FieldPath,
    ListType,
    MapType,
    PrimitiveName,
    PrimitiveType,
    Schema,
    StructType,
    can_widen,
    is_float,
    is_orderable,
    type_name,
)

__all__ = [
    "INTEGERS",
    "DataType",
    "DecimalType",
    "Field",
    "FieldPath",
    "Leaf",
    "ListType",
    "MapType",
    "PrimitiveName",
    "PrimitiveType",
    "Schema",
    "StructType",
    "can_widen",
    "is_float",
    "is_orderable",
    "leaves",
    "parse_path",
    "path_text",
    "resolve",
    "schema_from_arrow",
    "schema_from_json",
    "schema_to_arrow",
    "schema_to_json",
    "type_name",
    "type_to_arrow",
]
