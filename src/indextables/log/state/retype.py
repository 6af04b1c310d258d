"""Columns under another type: since the schema changed, or because a type cannot be stored."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def conform(column: Any, kind: Any) -> Any:
    """The same values under the type they have since the schema changed; what has none is null.

    An integer's bound becomes text when its column became a decimal, and a double when it became one.
    """
    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([conform(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_struct(column.type) and pa.types.is_struct(kind):
        return _conform_struct(column, kind)
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        near = column.cast(kind, safe=False)
        # what a double cannot hold was never a bound of the narrower column
        same = pc.equal(near.cast(column.type, safe=False), column)
        return pc.if_else(same, near, pa.scalar(None, kind))
    try:
        return column.cast(kind)
    except pa.ArrowException:  # no such widening exists
        return pa.nulls(len(column), kind)


def _conform_struct(array: Any, kind: Any) -> Any:
    names = [field.name for field in array.type]
    children = dict(zip(names, array.flatten(), strict=True))
    parts = [
        conform(children[field.name], field.type)
        if field.name in children
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    if not parts:
        return pa.nulls(len(array), kind)
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())


def without_hollow(kind: Any) -> Any | None:
    """The type without structs that have no fields; None if nothing is left."""
    if not pa.types.is_struct(kind):
        return kind
    fields = [(field.name, without_hollow(field.type)) for field in kind]
    kept = [(name, below) for name, below in fields if below is not None]
    return pa.struct(kept) if kept else None
