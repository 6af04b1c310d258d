"""PARTITION (day = '…') of an INSERT: each fixed value as the rows get it and as the log spells it.

The value is the one that Spark's cast gives, whatever its text looks like. So the rows that an OVERWRITE
replaces are those of the partition it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.prune.partitions import decode_partition, partition_text
from indextables.core.stats.wire import Physical
from indextables.core.types import DataType, PrimitiveType, resolve, type_name
from indextables.engines.spark.jvm.gateway import each, jvm_tools
from indextables.engines.spark.statement.statements import Insert
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.fit import spark_type
from indextables.errors import ConfigError, IndexTablesError, SchemaMismatchError, UnsupportedTypeError
from indextables.log.state.snapshot import Snapshot


class FixedValue(NamedTuple):
    """A value that all rows of a statement get."""

    column: Column
    text: str | None
    """The value as the log spells it; None is NULL."""


def fixed_partition(
    session: SparkSession, statement: Insert, snapshot: Snapshot
) -> dict[str, FixedValue]:
    """Returns the fixed values by the table's names of the columns, which must be partition columns."""
    types = {field.name: field.type for field in snapshot.schema}
    for name in (*statement.partition, *statement.open_partitions):
        if resolve(snapshot.schema, (name,))[0][0] not in snapshot.partition_columns:
            raise SchemaMismatchError(
                f"{name!r} is not a partition column of the table",
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
            f"{text!r} is not a value of the partition column {name!r}, a {type_name(kind)}",
            hint="write it as Spark casts it",
        )
    return FixedValue(column, partition_text(physical, kind))


def _physical(session: SparkSession, text: str, kind: DataType) -> Physical | None:
    """Returns what Spark makes of the text; None if it is no value of that type, under ANSI rules or not."""
    value = seam.try_cast(F.lit(text), spark_type(kind))
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
            physical: Physical | None = found
            return physical


# Clauses of CREATE TABLE that a table does not keep are refused, because users rely on CHECK or DEFAULT.

_PADDED: Final = re.compile(r'"(var)?char\(', re.ASCII)


def refuse_unkept(plan: JavaObject, path: str) -> None:
    """Raises an error for the first clause of a CREATE TABLE that would be ignored."""
    spec = plan.tableSpec()
    location = spec.location()
    if location.isDefined() and location.get().rstrip("/") != path.rstrip("/"):
        raise ConfigError(
            f"two locations are given: {path!r}, and {location.get()!r} as LOCATION",
            hint="leave out LOCATION",
        )
    if (collation := seam.collation(spec)) is not None:
        raise UnsupportedTypeError(
            f"a table has no collation of its own: {collation}",
            hint="leave out DEFAULT COLLATION; texts are compared by their bytes",
        )
    if spec.serde().isDefined():
        raise ConfigError(
            "a table of this format is Parquet: STORED AS and ROW FORMAT say nothing about it",
            hint="leave them out",
        )
    if (constraint := seam.constraint(spec)) is not None:
        raise IndexTablesError(
            f"a table does not check the constraint {constraint!r}",
            hint="leave it out; NOT NULL after a column's type is checked",
        )
    if plan.nodeName().endswith("AsSelect"):
        return
    for name, clause in seam.clauses(plan):
        raise IndexTablesError(
            f"column {name!r} cannot have {clause}", hint="leave it out, and write the value"
        )
    for column in seam.new_columns(jvm_tools(), plan).fields():
        if _PADDED.search(column.dataType().json()):
            raise UnsupportedTypeError(
                f"column {column.name()!r} has the type {column.dataType().catalogString()}, which a "
                "table cannot hold",
                hint="a STRING holds text of any length",
            )


def partition_columns(transforms: JavaObject) -> Iterator[str]:
    """Yields the partition columns of a new table; ConfigError for anything but a column itself."""
    for transform in each(transforms):
        if transform.name() != "identity":
            raise ConfigError(
                f"a table cannot be partitioned by {transform.toString()}",
                hint="add a column with that value and partition by it",
            )
        yield ".".join(transform.references()[0].fieldNames())
