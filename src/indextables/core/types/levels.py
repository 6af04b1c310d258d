"""How deep a type is nested, counted as Parquet counts it."""

from __future__ import annotations

from typing import Final, assert_never

import pyarrow as pa

from indextables.core.types.types import (
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
)
from indextables.errors import UnsupportedTypeError

MAX_LEVELS: Final = 64
"""Arrow writes any depth and reads 100; a part of a checkpoint wraps each column in a few more."""


def check_levels(schema: StructType) -> None:
    """UnsupportedTypeError if a column is nested so deep that its rows could be written, and never read."""
    for field in schema:
        waiting: list[tuple[DataType, int]] = [(field.type, 1)]
        while waiting:  # a loop, since a schema from a file may be as deep as it likes
            kind, level = waiting.pop()
            if level > MAX_LEVELS:
                raise _too_deep(field.name)
            waiting.extend(_below(kind, level))


def check_arrow_levels(schema: pa.Schema) -> None:
    """The same for an Arrow schema."""
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
        hint="a struct is one level, a list or a map two: store the inner part as JSON text",
        column=column,
    )
