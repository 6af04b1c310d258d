"""What kind of constant a literal is, by Spark's names."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Final

from indextables.core.bind.cuts import Unknown
from indextables.core.predicate.nodes import Literal
from indextables.core.types import DataType, PrimitiveType, type_name

_TIME_TYPES: Final = ("date", "timestamp", "timestamp_ntz")


def kind_of(literal: Literal) -> str:
    """Spark's name for the kind of a literal; all integers are one kind."""
    match literal.value:
        case None:
            return "null"
        case _ if isinstance(literal.type, PrimitiveType) and literal.type.name in _TIME_TYPES:
            return literal.type.name
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "double"
        case Decimal():
            return "decimal"
        case str():
            return "string"
        case bytes() | bytearray() | memoryview():
            return "binary"
        case dt.datetime() as value:
            return "timestamp_ntz" if value.tzinfo is None else "timestamp"
        case dt.date():
            return "date"
        case _:
            return type(literal.value).__name__


def mismatch(literal: Literal, dtype: DataType) -> Unknown:
    """Why this literal and a column of this type cannot be compared."""
    return Unknown(f"Spark cannot compare {type_name(dtype)} with {kind_of(literal)}")
