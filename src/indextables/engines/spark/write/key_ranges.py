"""Which keys a write is about, short enough to find the files that may have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import And, Compare, IsIn, Literal, Predicate, Ref
from indextables.core.types import INTEGERS, DecimalType, Field, PrimitiveType, StructType
from indextables.engines.spark.jvm.attributes import quoted
from indextables.engines.spark.write.fit import spark_type

_FEW: Final = 1000
"""Up to so many keys are named one by one."""


@dataclass(frozen=True)
class KeyRange:
    """Values of one column of the key: all of them, or the least and the greatest."""

    field: Field
    values: tuple[Any, ...]
    is_list: bool

    @property
    def condition(self) -> Predicate:
        """Returns TRUE for every row with such a key, for statistics."""
        ref = Ref((self.field.name,))
        literals = tuple(Literal(value, self.field.type) for value in self.values)
        if self.is_list:
            return IsIn(ref, literals)
        return And((Compare(">=", ref, literals[0]), Compare("<=", ref, literals[1])))

    @property
    def filter(self) -> Column:
        """Returns the same for Spark."""
        column = F.col(quoted(self.field.name))
        values = [_logical(value, self.field) for value in self.values]
        if self.is_list:
            return column.isin(values)
        return column.between(values[0], values[1])


@dataclass(frozen=True)
class Keys:
    """What is known of the keys of some rows."""

    ranges: tuple[KeyRange, ...] = ()
    """By column; a column whose values cannot be carried says nothing."""
    are_distinct: bool = False
    """True if no key is there twice; False says nothing."""
    is_empty: bool = False
    """True if there are no rows; False says nothing."""

    @property
    def condition(self) -> Predicate:
        """Returns TRUE for every row that may have one of the keys."""
        return And(tuple(each.condition for each in self.ranges))

    @property
    def filter(self) -> Column | None:
        """Returns the same as a filter that reaches the files; None if nothing is known."""
        if not self.ranges:
            return None
        return reduce(Column.__and__, (each.filter for each in self.ranges))


def keys_of(rows: DataFrame, schema: StructType, key: Sequence[str]) -> Keys:
    """Returns what can be said about the keys of these rows in one look at them, or two if they are many."""
    fields = [f for f in schema if f.name in key and is_known(f)]
    if not fields:
        return Keys()
    physical = [_physical(F.col(quoted(f.name)), f) for f in fields]
    some = rows.select(physical).limit(_FEW + 1).collect()
    if not some:
        return Keys(are_distinct=True, is_empty=True)
    if len(some) <= _FEW:
        lists = (tuple(dict.fromkeys(column)) for column in zip(*some, strict=True))
        ranges = tuple(
            KeyRange(f, values, is_list=True) for f, values in zip(fields, lists, strict=True)
        )
        is_whole = len(fields) == len(key)
        return Keys(ranges, are_distinct=is_whole and len(set(map(tuple, some))) == len(some))
    bounds = [made for column in physical for made in (F.min(column), F.max(column))]
    (found,) = rows.agg(*bounds).collect()
    return Keys(
        tuple(
            KeyRange(f, (found[2 * i], found[2 * i + 1]), is_list=False) for i, f in enumerate(fields)
        )
    )


def is_known(field: Field) -> bool:
    """Returns whether values of this column can be carried to the driver and compared there."""
    match field.type:
        case DecimalType() | PrimitiveType("string" | "date" | "timestamp"):
            return not field.metadata
        case PrimitiveType(name):
            return name in INTEGERS
        case _:
            return False


def _physical(values: Column, field: Field) -> Column:
    """Numbers instead of dates and times: Python has none outside the years 1 to 9999."""
    match field.type:
        case PrimitiveType("date"):
            return F.unix_date(values)
        case PrimitiveType("timestamp"):
            return F.unix_micros(values)
        case _:
            return values


def _logical(value: Any, field: Field) -> Column:
    match field.type:
        case PrimitiveType("date"):
            return F.date_from_unix_date(F.lit(value))
        case PrimitiveType("timestamp"):
            return F.timestamp_micros(F.lit(value))
        case _:
            return F.lit(value).cast(spark_type(field.type))
