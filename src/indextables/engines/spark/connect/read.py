"""Reads a table on Spark Connect: the client plans, and the server reads plain Parquet files.

A client has no planner that could be asked, so splits are skipped only by the `where` of the read. That
condition is applied to the rows as well. The DataFrame made of them is Spark's own from then on.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Final, assert_never

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as sf
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType as SparkSchema

from indextables.core.prune.partitions import partition_value
from indextables.core.types import (
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    schema_to_json,
)
from indextables.engines.spark.jvm.gateway import quoted
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.place.tables_and_options import (
    SparkTable,
    flag,
    parsed_alike,
    snapshot_of,
)
from indextables.engines.spark.scan.file_list import ALL_FILES, AS_STORED, reader_options
from indextables.engines.spark.scan.partition_rows import partition_groups
from indextables.engines.spark.scan.reader import PARQUET, checked_options
from indextables.errors import IndexTablesError, LogCorruptedError, PredicateError, UnknownColumnError
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.plan.planner import Plan, plan_files
from indextables.sql.conditions.parser import parse_predicate
from indextables.storage.local import LocalStore
from indextables.storage.location import parse_location
from indextables.storage.open import open_store

_MOST_PARTITIONS: Final = 500
"""Each is one read; with more of them Spark takes longer to plan than to read."""
_FILES_AT_ONCE: Final = 2000
# Names of files that Spark never reads.
_HIDDEN: Final = r"(^|/)[._][^/]*$|\._COPYING_$"
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - for times without a zone
_SQL_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def open_table(path: str) -> SparkTable:
    """Returns the table at a path or URI that client and server can both read, not read yet."""
    store = open_store(path)
    location = parse_location(path)
    if isinstance(store, LocalStore):
        return SparkTable(TransactionLog(store), Place(store, f"file://{store.uri}", path))
    root = path.rstrip("/")
    if location is not None and location.family == "s3":
        root = f"s3a:{root.partition(':')[2]}"  # Hadoop's name for s3
    return SparkTable(TransactionLog(store), Place(store, root, path))


def read_table(session: SparkSession, path: str, options: Mapping[str, object]) -> DataFrame:
    """Returns the rows of a version of the table that satisfy the option `where`, or all of them without it."""
    given = checked_options(options)
    table = open_table(path)
    snapshot = snapshot_of(session, table, given.get("versionAsOf"), given.get("timestampAsOf"))
    where = given.get("where")
    read_optimized = flag("readOptimized", given.get("readOptimized"))
    plan = _planned(session, snapshot, where, read_optimized=read_optimized)
    if (plan.rows & ~plan.bare).any():
        raise IndexTablesError(
            f"{path} has delta files to merge, which is not possible on Spark Connect",
            hint="compact the table, read it with .option('readOptimized', True) to see only its base "
            "files, or use a classic session",
        )
    parquet: dict[str, str] = {name: given[name] for name in PARQUET if name in given}
    settings = {**parquet, **reader_options(snapshot), **ALL_FILES, **AS_STORED}
    frame = _frame(session, plan, table.place.root, settings)
    return frame.where(where) if where is not None else frame


def _planned(
    session: SparkSession, snapshot: Snapshot, where: str | None, *, read_optimized: bool
) -> Plan:
    """Returns the plan; a condition that only Spark understands, or reads in another way, skips nothing."""
    zone = str(session.conf.get("spark.sql.session.timeZone"))
    if where is not None and parsed_alike(session, str(where)):
        try:
            condition = parse_predicate(where, zone)
            return plan_files(snapshot, condition, zone, read_optimized=read_optimized)
        except (PredicateError, UnknownColumnError):
            pass
    return plan_files(snapshot, read_optimized=read_optimized)


def _frame(session: SparkSession, plan: Plan, root: str, options: Mapping[str, str]) -> DataFrame:
    schema = plan.snapshot.schema
    partitions = set(plan.snapshot.partition_columns)
    stored = _spark_schema(StructType(tuple(f for f in schema if f.name not in partitions)))
    reads: list[DataFrame] = []
    for values, paths in _reads(plan, root):
        reader = session.read.schema(stored).options(**options)
        columns = [values[f.name] if f.name in values else sf.col(quoted(f.name)) for f in schema]
        reads.append(reader.parquet(*paths).select(*columns))
    if not reads:
        return session.createDataFrame([], _spark_schema(schema))
    return _union(reads)


def _reads(plan: Plan, root: str) -> Iterator[tuple[dict[str, Column], list[str]]]:
    """Yields files that are read together, and the values of their partition columns."""
    groups = partition_groups(plan.snapshot)
    keys = plan.snapshot.column("key")
    kept = np.flatnonzero(plan.rows)
    if pc.any(pc.match_substring_regex(keys.take(kept), _HIDDEN)).as_py():
        raise IndexTablesError(
            "the table has files whose names begin with a dot or an underscore, which Spark does not read",
            hint="use a classic session, or rewrite the table with OPTIMIZE",
        )
    present = np.unique(groups.group[kept])
    if len(present) > _MOST_PARTITIONS:
        raise IndexTablesError(
            f"{len(present)} partitions would be read, but on Spark Connect at most {_MOST_PARTITIONS} can be",
            hint="narrow the read with .option('where', …), or use a classic session",
        )
    uris = pc.binary_join_element_wise(root, keys, "/")
    # Spark takes paths for patterns, and a table may lie in a directory called `[x]`.
    uris = pc.replace_substring_regex(uris, r"([{}\[\]*?\\])", r"\\\1")
    for group in present.tolist():
        texts = groups.texts[group]
        values = {
            f.name: _literal(text, f.type).alias(f.name)
            for f, text in zip(groups.columns, texts, strict=True)
        }
        paths = uris.take(kept[groups.group[kept] == group]).to_pylist()
        for start in range(0, len(paths), _FILES_AT_ONCE):
            yield values, paths[start : start + _FILES_AT_ONCE]


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """Returns the union as a balanced tree; a plan as deep as the number of frames would exhaust the server's stack."""
    while len(frames) > 1:
        frames = [
            reduce(lambda a, b: a.unionAll(b), frames[i : i + 2]) for i in range(0, len(frames), 2)
        ]
    return frames[0]


def _spark_schema(schema: StructType) -> SparkSchema:
    """Returns Spark's schema, made nullable by Spark as it must be: a column newer than a file is NULL there."""
    return SparkSchema.fromJson(json.loads(schema_to_json(schema)))


def _literal(text: str | None, kind: DataType) -> Column:
    """Returns a partition value as an expression of its column's type."""
    name = _sql_name(kind)
    value = partition_value(text, kind)
    if value is None:
        return sf.expr(f"CAST(NULL AS {name})")
    match kind:
        case PrimitiveType("string"):
            return sf.lit(value)
        case PrimitiveType("binary"):
            assert isinstance(value, bytes)
            return sf.expr(f"X'{value.hex()}'")
        case PrimitiveType("date"):
            return sf.expr(f"date_from_unix_date({value!r})")
        case PrimitiveType("timestamp"):
            return sf.expr(f"timestamp_micros({value!r})")
        case PrimitiveType("timestamp_ntz"):
            assert isinstance(value, int)
            return sf.expr(f"TIMESTAMP_NTZ'{_EPOCH + dt.timedelta(microseconds=value)}'")
        case _:
            # as Spark writes NaN and Infinity
            text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), str(value))
            return sf.expr(f"CAST('{text}' AS {name})")


def _sql_name(kind: DataType) -> str:
    match kind:
        case PrimitiveType(name):
            return _SQL_NAMES.get(name, name)
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ListType() | MapType() | StructType():
            raise LogCorruptedError(f"a partition column cannot have the type {kind}")
        case _:
            assert_never(kind)
