"""The constants of a Catalyst expression, exactly: from its JSON where that is safe, else from the JVM.

JSON shows a binary literal as an address, a timestamp as local text without a zone (two instants
print alike on the night a clock goes back) and the list of a long IN as null.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np

from indextables.core.expr.datetimes import date_literal, parse_date, timestamp_literal
from indextables.core.predicate.nodes import Literal
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, schema_from_json
from indextables.engines.spark.jvm.gateway import jvm_tools

_REPLACEMENT: Final = "\ufffd"


def literal_of(node: Mapping[str, Any], jvm_node: Callable[[], Any]) -> Literal | None:
    """Returns the constant of a Literal node with its type.

    None where its value cannot be known for sure.
    """
    kind = _type_of(node["dataType"])
    if node["value"] is None:
        return Literal(None, kind)
    match kind:
        case PrimitiveType("timestamp" | "binary"):
            return _typed(jvm_node().value(), kind)
        case PrimitiveType("date"):
            return _typed(parse_date(node["value"]), kind)
        case PrimitiveType("boolean"):
            return Literal({"true": True, "false": False}[node["value"]], kind)
        case PrimitiveType("string"):
            # Text that is not UTF-8 prints with replacement characters: its bytes are lost.
            return None if _REPLACEMENT in node["value"] else Literal(node["value"], kind)
        case _:
            return _typed(_number(node["value"], kind), kind)


def _type_of(json_type: Any) -> DataType:
    wrapped = {"type": "struct", "fields": [{"name": "value", "type": json_type}]}
    found = schema_from_json(json.dumps(wrapped)).fields[0]
    if found.metadata:
        raise ValueError(json_type)  # a collated string compares by its collation
    return found.type


def _number(text: str, kind: DataType) -> Any:
    match kind:
        case PrimitiveType("float" | "double"):
            return float(text)
        case DecimalType():
            return Decimal(text)
        case PrimitiveType(name) if name in INTEGERS or name == "timestamp_ntz":
            return int(text)
        case _:
            return None


def _typed(value: Any, kind: DataType) -> Literal | None:
    """Returns a value in Catalyst's internal form: days, microseconds, raw bytes."""
    match kind:
        case _ if value is None:
            return None
        case PrimitiveType("date"):
            return Literal(date_literal(value).value, kind)
        case PrimitiveType("timestamp" | "timestamp_ntz" as name):
            return Literal(timestamp_literal(value, zoned=name == "timestamp").value, kind)
        case PrimitiveType("binary"):
            return Literal(bytes(value), kind)
        case PrimitiveType("float"):
            # 1.1 is printed as the shortest text of a *float*; as a double it is another number.
            return Literal(float(np.float32(value)), kind)
        case _:
            return Literal(value, kind)


def values_of_set(in_set: Any, kind: DataType) -> tuple[Literal, ...] | None:
    """Returns the list of an InSet node, NULL included.

    None, never a shorter list, if one cannot be read.
    """
    tools = jvm_tools()
    members = in_set.hset()
    match kind:
        case DecimalType():
            texts = members.mkString("\n").split("\n")
            found = [None if text == "null" else _decimal(text) for text in texts]
        case _:
            listed = json.loads(tools.json.writeValueAsString(tools.as_java(members)))
            found = [_from_jackson(value, kind) for value in listed]
    if len(found) != members.size():
        return None
    literals = [Literal(None, kind) if value is None else _typed(value, kind) for value in found]
    known = tuple(literal for literal in literals if literal is not None)
    return known if len(known) == len(found) else None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as e:
        raise ValueError(text) from e


def _from_jackson(value: Any, kind: DataType) -> Any:
    """Returns a set's member as Jackson writes it: UTF8String as an object, bytes in base64, NaN as text."""
    match kind:
        case _ if value is None:
            return None
        case PrimitiveType("string"):
            return base64.b64decode(value["bytes"]).decode()
        case PrimitiveType("binary"):
            return base64.b64decode(value)
        case PrimitiveType("float" | "double"):
            return float(value)
        case PrimitiveType(name) if name in INTEGERS or name in {"date", "timestamp", "timestamp_ntz"}:
            return int(value)
        case PrimitiveType("boolean"):
            return bool(value)
        case _:
            raise ValueError(kind)


_GETTERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("integer", "date"), "getInt"),
    **dict.fromkeys(("long", "timestamp", "timestamp_ntz"), "getLong"),
    **{
        name: f"get{name.title()}" for name in ("boolean", "byte", "short", "float", "double", "binary")
    },
    "string": "getUTF8String",
}
"""How a row of Catalyst gives its values, in their internal form."""


def tuple_of(literal: Any) -> tuple[Literal, ...] | None:
    """Returns the values of a constant struct; None where one is not known for sure."""
    return _of_row(literal.value(), _kinds_in(literal.dataType()))


def tuples_of_set(in_set: Any) -> list[tuple[Literal, ...]] | None:
    """Returns the structs in the list of an InSet node; None, never a shorter list, if one cannot be read."""
    kinds = _kinds_in(in_set.child().dataType())
    members = jvm_tools().as_java(in_set.hset()).toArray()
    rows = [_of_row(members[i], kinds) for i in range(len(members))]
    known = [row for row in rows if row is not None]
    return known if len(known) == len(rows) else None


def _kinds_in(struct: Any) -> list[DataType]:
    fields = json.loads(struct.json())["fields"]
    return [_type_of(field["type"]) for field in fields]


def _of_row(row: Any, kinds: list[DataType]) -> tuple[Literal, ...] | None:
    if row is None:
        return None
    found = [_at(row, place, kind) for place, kind in enumerate(kinds)]
    known = tuple(literal for literal in found if literal is not None)
    return known if len(known) == len(found) else None


def _at(row: Any, place: int, kind: DataType) -> Literal | None:
    if row.isNullAt(place):
        return Literal(None, kind)
    match kind:
        case DecimalType(precision, scale):
            return Literal(_decimal(row.getDecimal(place, precision, scale).toString()), kind)
        case PrimitiveType(name) if name in _GETTERS:
            value = getattr(row, _GETTERS[name])(place)
            if name == "string":
                text = value.toString()
                return None if _REPLACEMENT in text else Literal(text, kind)
            return _typed(value, kind)
        case _:
            return None
