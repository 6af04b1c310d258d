"""Parts inside a column that a table promises to be there: where the data lacks them.

What Spark reads it takes for nullable at every level, also from a table that promises more. So the
types alone do not tell whether rows fit, and each row is looked at when it is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.types import DataType, Field, ListType, MapType, StructType


def forbidden_nulls(values: Column, source: DataType, target: Field) -> Iterator[tuple[str, Column]]:
    """Each part that may be NULL in the data and must not be in the table, and the condition that it is.

    What lies under a NULL parent does not count; the condition is then FALSE or NULL.
    """
    return _inside(values, source, target.type, target.name)


def _inside(
    values: Column, source: DataType, target: DataType, path: str
) -> Iterator[tuple[str, Column]]:
    match source, target:
        case StructType(), StructType():
            theirs = {f.name.lower(): f for f in source}
            for wanted in target:
                given = theirs.get(wanted.name.lower())
                if given is not None:
                    part = values.getField(given.name)
                    for name, is_null in _part(part, given, wanted, f"{path}.{wanted.name}"):
                        yield name, values.isNotNull() & is_null
        case ListType(), ListType():
            given = Field("element", source.element, source.contains_null)
            wanted = Field("element", target.element, target.contains_null)
            yield from _any_of(values, given, wanted, f"{path}.element")
        case MapType(), MapType():
            given = Field("key", source.key, nullable=False)
            wanted = Field("key", target.key, nullable=False)
            yield from _any_of(F.map_keys(values), given, wanted, f"{path}.key")
            given = Field("value", source.value, source.value_contains_null)
            wanted = Field("value", target.value, target.value_contains_null)
            yield from _any_of(F.map_values(values), given, wanted, f"{path}.value")


def _part(values: Column, given: Field, wanted: Field, path: str) -> Iterator[tuple[str, Column]]:
    if given.nullable and not wanted.nullable:
        yield path, values.isNull()
    yield from _inside(values, given.type, wanted.type, path)


def _any_of(items: Column, given: Field, wanted: Field, path: str) -> Iterator[tuple[str, Column]]:
    """The same for every item of an array."""
    names = [name for name, _ in _part(F.lit(None), given, wanted, path)]
    for at, name in enumerate(names):
        yield name, _has(items, given, wanted, at)


def _has(items: Column, given: Field, wanted: Field, at: int) -> Column:
    return F.exists(items, lambda item: list(_part(item, given, wanted, ""))[at][1])
