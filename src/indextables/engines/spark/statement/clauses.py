"""PARTITION (day = '…') of an INSERT: each fixed value as the rows get it and as the log spells it.

The value is the one that Spark's cast gives, whatever its text looks like, so that the rows which an
OVERWRITE replaces are those of the very partition it writes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.prune.partitions import decode_partition
from indextables.core.types import DataType, PrimitiveType, resolve, type_name
from indextables.engines.spark.statement.statements import Insert
from indextables.engines.spark.write.fit import spark_type
from indextables.errors import SchemaMismatchError
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.read.align import partition_text


class FixedValue(NamedTuple):
    """One value that all rows of a statement get."""

    column: Column
    text: str | None
    """As the log spells it; None is NULL."""


def fixed_partition(
    session: SparkSession, statement: Insert, snapshot: Snapshot
) -> dict[str, FixedValue]:
    """The fixed values by the table's names of the columns; only partition columns have one."""
    types = {field.name: field.type for field in snapshot.schema}
    for name in (*statement.partition, *statement.open_partitions):
        if resolve(snapshot.schema, (name,))[0][0] not in snapshot.partition_columns:
            raise SchemaMismatchError(
                f"{name!r} is no partition column of the table",
                hint=f"it is partitioned by {list(snapshot.partition_columns)}",
            )
    spelled = {
        resolve(snapshot.schema, (name,))[0][0]: text for name, text in statement.partition.items()
    }
    return {name: _fixed(session, name, text, types[name]) for name, text in spelled.items()}


def _fixed(session: SparkSession, name: str, text: str | None, kind: DataType) -> FixedValue:
    column = F.lit(text).cast(spark_type(kind))
    if text is None:
        return FixedValue(column, None)
    physical = _physical(session, text, kind)
    if physical is None and (text != "" or kind != PrimitiveType("string")):
        raise SchemaMismatchError(
            f"{text!r} is no value of the partition column {name!r}, a {type_name(kind)}",
            hint="write it as Spark casts it",
        )
    return FixedValue(column, partition_text(physical, kind))


def _physical(session: SparkSession, text: str, kind: DataType) -> Any:
    """What Spark makes of the text; None if it is no value of that type, ANSI or not."""
    value = F.lit(text).try_cast(spark_type(kind))
    match kind:
        case PrimitiveType("timestamp"):
            shown = F.unix_micros(value)
        case PrimitiveType("binary"):
            shown = value
        case _:
            shown = value.cast("string")
    (found,) = session.range(1).select(shown).collect()[0]
    match found:
        case str():
            return decode_partition(found, kind)
        case bytearray():
            return bytes(found)
        case _:
            return found
