"""Which keys a change is about: as a condition short enough to find the files that may have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import And, Predicate
from indextables.core.predicate.to_sql import to_spark_sql
from indextables.core.types import INTEGERS, DecimalType, Field, PrimitiveType, StructType
from indextables.engines.spark.jvm.attributes import quoted
from indextables.errors import DuplicateKeyError
from indextables.parquet.read.key_index import repeated_mask
from indextables.parquet.read.read import key_bounds, key_condition

_FEW: Final = 1000
"""Up to so many keys are named one by one."""


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


def keys_of(rows: DataFrame, schema: StructType, key: Sequence[str]) -> Keys:
    """Returns what can be said about the keys of these rows in one look at them, or two if they are many.

    One row comes to this process: a list of a few keys, or the least and the greatest. A column whose
    values cannot be compared here says nothing.
    """
    known = [f.name for f in schema if f.name in key and is_known(f)]
    if not known:
        return Keys()
    each = F.struct(*(F.col(quoted(name)) for name in known))
    few = _fetched(rows.limit(_FEW + 1).agg(F.collect_list(each).alias("keys")))
    if not few.num_rows:
        return Keys(are_distinct=True, is_empty=True)
    if few.num_rows <= _FEW:
        is_whole = len(known) == len(key)
        distinct = is_whole and not repeated_mask(few).any()
        return Keys(key_condition(few, schema), are_distinct=distinct)
    bounds = (
        F.struct(*(bound(quoted(name)).alias(name) for name in known)) for bound in (F.min, F.max)
    )
    return Keys(key_bounds(_fetched(rows.agg(F.array(*bounds).alias("keys"))), schema))


def _fetched(lists: DataFrame) -> pa.Table:
    """Returns the structs of the one list in this frame as rows."""
    found: Any = lists.toArrow().column(0).combine_chunks().flatten()
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(found)])


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
    """DuplicateKeyError if two of the rows have one key."""
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
