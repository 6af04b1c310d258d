"""Conversion of schemas to and from Spark's JSON."""

from __future__ import annotations

import json
import re
from typing import Any, Final, assert_never, get_args

import orjson

from indextables.core.types.arrow import check_levels
from indextables.core.types.types import (
    CHAR_VARCHAR,
    COLLATIONS,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveName,
    PrimitiveType,
    StructType,
)
from indextables.errors import SchemaError, UnsupportedTypeError

_PRIMITIVES: Final[dict[str, PrimitiveName]] = {name: name for name in get_args(PrimitiveName)}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_SIZED_TEXT: Final = re.compile(r"(?:char|varchar)\(\s*\d+\s*\)")
_COLLATED: Final = re.compile(r"string collate (\S+)", re.IGNORECASE)


def schema_to_json(schema: StructType) -> str:
    """Returns the JSON text that PySpark's `StructType.fromJson` reads as this schema."""
    return json.dumps(_type_to_json(schema), separators=(",", ":"), ensure_ascii=False)


def _type_to_json(dtype: DataType) -> str | dict[str, object]:
    match dtype:
        case PrimitiveType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ListType(element, contains_null):
            return {
                "type": "array",
                "elementType": _type_to_json(element),
                "containsNull": contains_null,
            }
        case MapType(key, value, contains_null):
            return {
                "type": "map",
                "keyType": _type_to_json(key),
                "valueType": _type_to_json(value),
                "valueContainsNull": contains_null,
            }
        case StructType(fields):
            return {"type": "struct", "fields": [_field_to_json(f) for f in fields]}
        case _:
            assert_never(dtype)


def _field_to_json(f: Field) -> dict[str, object]:
    return {
        "name": f.name,
        "type": _type_to_json(f.type),
        "nullable": f.nullable,
        "metadata": dict(f.metadata),
    }


def schema_from_json(text: str) -> StructType:
    """Returns the schema that this text describes.

    Raises SchemaError if the text is not a schema, UnsupportedTypeError for a type that tables cannot hold.
    """
    try:
        schema = _type_from_json(_loads(text), "")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        if isinstance(e, SchemaError):
            raise
        raise SchemaError(
            f"this is not a schema in Spark's JSON form: {text[:200]!r}",
            hint='a schema looks like {"type":"struct","fields":[{"name":"a","type":"long",…}]}',
        ) from e
    if not isinstance(schema, StructType):
        raise SchemaError(f"a table's schema is a struct, not {text[:200]!r}")
    check_levels(schema)
    return schema


def _loads(text: str) -> object:
    found: object
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:  # Python's own reader accepts more than JSON allows
        found = json.loads(text)
    return found


def _type_from_json(value: object, name: str) -> DataType:
    if isinstance(value, str):
        return _named_type(value, name)
    if not isinstance(value, dict):
        raise TypeError(value)
    match value["type"]:
        case "struct":
            return StructType(tuple(_field_from_json(f) for f in value["fields"]))
        case "array":
            return ListType(_type_from_json(value["elementType"], name), bool(value["containsNull"]))
        case "map":
            key, item = value["keyType"], value["valueType"]
            contains_null = bool(value["valueContainsNull"])
            return MapType(_type_from_json(key, name), _type_from_json(item, name), contains_null)
        case other:
            return _named_type(str(other), name)


def _named_type(text: str, name: str) -> DataType:
    if text in _PRIMITIVES:
        return PrimitiveType(_PRIMITIVES[text])
    if _SIZED_TEXT.fullmatch(text) or _COLLATED.fullmatch(text):
        return PrimitiveType("string")
    if text == "decimal":
        return DecimalType(10, 0)
    found = _DECIMAL.fullmatch(text)
    if found and 1 <= int(found[1]) <= 38 and 0 <= int(found[2]) <= int(found[1]):
        return DecimalType(int(found[1]), int(found[2]))
    raise UnsupportedTypeError(
        f"column {name!r} has the type {text}, which a table cannot hold",
        hint="cast the column to another type, or leave it out",
        column=name,
        type=text,
    )


def _field_from_json(value: dict[str, Any]) -> Field:
    name, metadata = value["name"], dict(value.get("metadata") or {})
    if not isinstance(name, str):
        raise TypeError(name)
    text = value["type"]
    # Older and newer Sparks put these into the type's name; the order of values depends on them.
    if isinstance(text, str) and _SIZED_TEXT.fullmatch(text):
        metadata.setdefault(CHAR_VARCHAR, text)
    if isinstance(text, str) and (found := _COLLATED.fullmatch(text)):
        metadata.setdefault(COLLATIONS, {name: found[1]})
    return Field(name, _type_from_json(text, name), bool(value.get("nullable", True)), metadata)
