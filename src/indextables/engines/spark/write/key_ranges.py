"""Which keys a change is about: as a condition short enough to find the files that may have them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import And, Compare, IsIn, Literal, Predicate, Ref
from indextables.core.predicate.to_sql import to_spark_sql
from indextables.core.types import INTEGERS, DecimalType, Field, PrimitiveType, StructType
from indextables.engines.spark.jvm.gateway import quoted
from indextables.engines.spark.write.changed_rows import kept, observed
from indextables.errors import DuplicateKeyError

_FEW: Final = 1000
"""The most keys that are named one by one."""


@dataclass(frozen=True)
class Keys:
    """What is known of the keys of some rows."""

    condition: Predicate = And(())  # noqa: RUF009 - frozen
    """TRUE for every row that has one of the keys, and maybe for others."""
    are_distinct: bool = False
    """True if no key is there twice; False says nothing."""
    is_empty: bool = False
    """True if there are no rows; False says nothing."""

    @property
    def filter(self) -> Column:
        """Returns the condition as a filter that reaches the files."""
        return F.expr(to_spark_sql(self.condition))


def with_keys(
    rows: DataFrame, schema: StructType, key: Sequence[str], until: ExitStack
) -> tuple[DataFrame, Keys]:
    """Returns the rows, computed now, and what can be said about their keys.

    One row comes to this process: the least and the greatest values, and a list of the keys if they are few.
    A column whose values cannot be compared here says nothing.
    """
    fields = [f for f in schema if f.name in key and is_known(f)]
    values = [_physical(F.col(quoted(f.name)), f) for f in fields]
    bounds = [bound(each) for each in values for bound in (F.min, F.max)]
    seen = Observation()
    named = (each.alias(f"b{i}") for i, each in enumerate(bounds))
    found = until.enter_context(kept(rows.observe(seen, F.count(F.lit(1)).alias("rows"), *named)))
    count, *extremes = observed(seen, ["rows", *(f"b{i}" for i in range(len(bounds)))])
    if not count:
        return found, Keys(are_distinct=True, is_empty=True)
    if not fields:
        return found, Keys()
    if count > _FEW:
        between = zip(fields, extremes[::2], extremes[1::2], strict=True)
        return found, Keys(And(tuple(_between(*each) for each in between)))
    (row,) = found.agg(F.collect_list(F.struct(*values))).collect()
    some = set(map(tuple, row[0]))
    lists = zip(fields, zip(*some, strict=True), strict=True)
    is_whole = len(fields) == len(key)
    return found, Keys(
        And(tuple(_one_of(*each) for each in lists)),
        are_distinct=is_whole and len(some) == count,
    )


def _one_of(field: Field, values: Sequence[Any]) -> Predicate:
    if not _arrived(values):
        return And(())
    distinct = dict.fromkeys(values)
    return IsIn(Ref((field.name,)), tuple(Literal(value, field.type) for value in distinct))


def _between(field: Field, low: Any, high: Any) -> Predicate:
    if not _arrived((low, high)):
        return And(())
    ref = Ref((field.name,))
    bounds = (Literal(low, field.type), Literal(high, field.type))
    return And((Compare(">=", ref, bounds[0]), Compare("<=", ref, bounds[1])))


def _arrived(values: Sequence[Any]) -> bool:
    """Returns whether the values came here as they are: bytes that are not UTF-8 came as U+FFFD, and are lost."""
    return not any(isinstance(value, str) and "\ufffd" in value for value in values)


def _physical(values: Column, field: Field) -> Column:
    """Returns the values, dates and times as numbers: Python has none outside the years 1 to 9999."""
    match field.type:
        case PrimitiveType("date"):
            return F.unix_date(values)
        case PrimitiveType("timestamp"):
            return F.unix_micros(values)
        case _:
            return values


def is_known(field: Field) -> bool:
    """Returns whether values of this column can be carried to the driver and compared there."""
    match field.type:
        case DecimalType() | PrimitiveType("string" | "date" | "timestamp"):
            return not field.metadata
        case PrimitiveType(name):
            return name in INTEGERS
        case _:
            return False


def refuse_repeated_keys(rows: DataFrame, key: Sequence[str]) -> None:
    """Raises DuplicateKeyError if two of the rows have one key."""
    names = [quoted(name) for name in key]
    found = rows.groupBy(*names).count().where("count > 1").limit(1).collect()
    if found:
        raise repeated_key(found[0], key, "more than one row of the data has")


def repeated_key(row: Any, key: Sequence[str], what: str) -> DuplicateKeyError:
    """Returns the error about a key that two rows have."""
    values = {name: row[name] for name in key}
    return DuplicateKeyError(
        f"{what} the key {', '.join(f'{n} = {v!r}' for n, v in values.items())}",
        hint="keep one row for each key; nothing was committed",
        record_key=values,
    )
