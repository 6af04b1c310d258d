"""Partition columns as Spark reads them: the table's own, and those that say where a row comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt
import orjson
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from indextables.core.prune.partitions import partition_value
from indextables.core.stats.columns import FileMask, as_array
from indextables.core.stats.wire import encode_value
from indextables.core.types import (
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
)
from indextables.engines.spark.jvm.gateway import JvmTools, handles, jvm_tools
from indextables.errors import LogCorruptedError
from indextables.log.state.snapshot import Snapshot

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


@dataclass(frozen=True)
class PartitionGroups:
    """The files of a snapshot by their partition values.

    `group` is the number of each file's partition, `texts` the values of each partition as the log has
    them. A table without partitions has a single one without values.
    """

    columns: StructType
    group: npt.NDArray[np.int64]
    texts: tuple[tuple[str | None, ...], ...]

    @property
    def count(self) -> int:
        """Returns the number of partitions."""
        return len(self.texts)

    @cached_property
    def order(self) -> npt.NDArray[np.int64] | None:
        """Returns the files with those of one partition next to each other; None if they already are."""
        if self.count < 2 or bool((np.diff(self.group) >= 0).all()):
            return None
        return np.argsort(self.group, kind="stable")


def partition_groups(snapshot: Snapshot) -> PartitionGroups:
    """Returns the files by the partition values that they share."""
    names = snapshot.partition_columns
    columns = StructType(tuple(f for name in names for f in snapshot.schema if f.name == name))
    group = np.zeros(snapshot.num_files, np.int64)
    if not names:
        return PartitionGroups(columns, group, ((),))
    values = snapshot.column("partition_values").combine_chunks()
    encoded = [values.field(name).dictionary_encode(null_encoding="encode") for name in names]
    for column in encoded:
        group = group * (len(column.dictionary) + 1) + np.asarray(column.indices)
        # renumbered each time, because many columns of many values would overflow
        _, group = np.unique(group, return_inverse=True)
    _, first = np.unique(group, return_index=True)
    rows = [column.take(first).to_pylist() for column in encoded]
    return PartitionGroups(columns, group, tuple(zip(*rows, strict=True)))


def file_groups(snapshot: Snapshot, lineage: Lineage) -> PartitionGroups:
    """Returns each file by itself, with its partition values and with where its rows come from."""
    partitions = partition_groups(snapshot)
    origins = zip(partitions.group.tolist(), lineage.texts(), strict=True)
    texts = tuple((*partitions.texts[group], *origin) for group, origin in origins)
    columns = StructType((*partitions.columns.fields, *LINEAGE.fields))
    return PartitionGroups(columns, np.arange(snapshot.num_files), texts)


def build_rows(groups: PartitionGroups, session: SparkSession) -> JavaObject:
    """Returns a Scala IndexedSeq with one InternalRow for each partition.

    Spark's own parser builds them from JSON in one call. py4j would send a small long as an Integer, and a
    row that holds an Integer where a Long belongs fails while it is read.
    """
    tools = jvm_tools()
    if not groups.columns.fields:
        return tools.seq([tools.empty_row]).toIndexedSeq()
    names = [f"c{i}" for i in range(len(groups.columns.fields))]
    kinds = [field.type for field in groups.columns]
    rows = [
        {name: _internal(text, kind) for name, text, kind in zip(names, row, kinds, strict=True)}
        for row in groups.texts
    ]
    layout = ",".join(f"{n}:{_internal_type(k)}" for n, k in zip(names, kinds, strict=True))
    parsed = sf.from_json(sf.lit(orjson.dumps(rows).decode()), f"array<struct<{layout}>>")
    plan = session.range(1).select(parsed)._jdf.queryExecution().analyzed()  # noqa: SLF001
    found = plan.expressions().apply(0).child().eval(tools.empty_row).array()
    return tools.as_scala(tools.lookup("java.util.Arrays").asList(found)).toIndexedSeq()


def _internal_type(kind: DataType) -> str:
    """Returns the type whose values Catalyst stores in the same form; a date is an int of days."""
    match kind:
        case PrimitiveType("date"):
            return "int"
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return "bigint"
        case PrimitiveType("byte"):
            return "tinyint"
        case PrimitiveType("short"):
            return "smallint"
        case PrimitiveType("long"):
            return "bigint"
        case PrimitiveType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ListType() | MapType() | StructType():
            raise LogCorruptedError(f"a partition column cannot have the type {kind}")
        case _:
            assert_never(kind)


def _internal(text: str | None, kind: DataType) -> object:
    value = partition_value(text, kind)
    match value:
        case float() if not math.isfinite(value):
            return text  # JSON has no NaN or Infinity, but Spark reads them from text
        case Decimal() | bytes():
            return encode_value(value, kind)
        case _:
            return value


def matching_groups(
    filters: JavaObject, groups: PartitionGroups, rows: JavaObject
) -> npt.NDArray[np.bool_]:
    """Returns one bit per partition, True if Spark's own evaluation of all filters is TRUE for its values.

    A filter sees only the partitions that the filters before it keep, as the right side of Spark's AND does:
    otherwise `p <> 'x' AND CAST(p AS INT) = 1` would fail for `x`. A filter that fails is tried again after
    the others, because Spark may have changed their order. If it still fails, no one can tell which rows
    match, and the error is the query's.
    """
    tools = jvm_tools()
    kept = np.ones(groups.count, np.bool_)
    waiting = [filters.apply(i) for i in range(filters.length())]
    attributes = _attributes(waiting, groups.columns, tools)
    while waiting:
        failed: list[JavaObject] = []
        for predicate in waiting:
            try:
                kept[kept] = _evaluate(predicate, attributes, _chosen(rows, kept, tools), tools)
            except (Py4JJavaError, PySparkException):
                if len(failed) + 1 == len(waiting):
                    raise
                failed.append(predicate)
        waiting = failed
    return kept


def _chosen(rows: JavaObject, kept: npt.NDArray[np.bool_], tools: JvmTools) -> JavaObject:
    return rows if kept.all() else tools.positions(kept).iterator().map(rows).toIndexedSeq()


def _evaluate(
    predicate: JavaObject, attributes: JavaObject, rows: JavaObject, tools: JvmTools
) -> npt.NDArray[np.bool_]:
    bound = tools.lookup(f"{_EXPRESSIONS}.BindReferences").bindReference(predicate, attributes, False)
    test = tools.lookup(f"{_EXPRESSIONS}.Predicate").createInterpreted(bound)
    test.initialize(0)
    answers = rows.iterator().map(handles().test_of(test)).mkString(",")
    return np.asarray([a == "true" for a in answers.split(",")] if answers else [], np.bool_)


def _attributes(predicates: Sequence[JavaObject], columns: StructType, tools: JvmTools) -> JavaObject:
    """Returns the partition columns in the order of the rows, as the attributes that the filters name."""
    named: dict[str, JavaObject] = {}
    for predicate in predicates:
        references = predicate.references().toSeq()
        for i in range(references.length()):
            named[references.apply(i).name()] = references.apply(i)
    # A filter may be a constant: Spark counts a filter without a column as a partition filter.
    unused = next(iter(named.values()), None)
    found = [] if unused is None else [named.get(f.name, unused.newInstance()) for f in columns]
    return tools.lookup(f"{_EXPRESSIONS}.package$AttributeSeq")(tools.seq(found))


# Where a row comes from, in columns that no file holds: its file, the file's age, and its slice.
#
# To Spark they are partition columns: constant in each file, known to the file index, and free to read.

FILE: Final = "__indextables_file"
"""The number of the row's file in its snapshot."""
SEQ: Final = "__indextables_seq"
"""The age of the row's file: a delta file hides rows of files with a lower number."""
SLICE: Final = "__indextables_slice"
"""The row's slice, by the number of the first file in it."""
LINEAGE: Final = StructType(
    tuple(Field(name, PrimitiveType("long"), nullable=False) for name in (FILE, SEQ, SLICE))
)


@dataclass(frozen=True, eq=False)
class Lineage:
    """The values of the columns of lineage, one for each file."""

    file: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]
    slice: npt.NDArray[np.int64]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Lineage:
        """Returns the values for every file of a snapshot, in its order; a file without a slice is a slice of its own."""
        numbers = np.arange(snapshot.num_files)
        encoded = as_array(snapshot.column("file_group")).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        first = np.full(len(encoded.dictionary) + 1, len(numbers))
        np.minimum.at(first, codes, numbers)
        slices = np.where(codes < 0, numbers, first[codes])
        return cls(numbers, snapshot.column("seq").to_numpy(), slices)

    def where(self, mask: FileMask) -> Lineage:
        """Returns the values for these files only; the numbers stay those of the whole snapshot."""
        return Lineage(self.file[mask], self.seq[mask], self.slice[mask])

    def texts(self) -> list[tuple[str, ...]]:
        """Returns the values as partition values are written, one row for each file."""
        columns: list[list[str]] = [
            values.astype(str).tolist() for values in (self.file, self.seq, self.slice)
        ]
        return list(zip(*columns, strict=True))
