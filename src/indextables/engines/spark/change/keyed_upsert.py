"""DataFrames written to a table with a record key: each row in place of the one that has its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.types import StructType
from indextables.engines.spark.change.clauses import Clause
from indextables.engines.spark.change.keyed_files import (
    KeyedWriter,
    keyed_target,
    refuse_repeated_keys,
    with_moves,
)
from indextables.engines.spark.change.rows import IN_SOURCE, Target, changed_rows, joined, kept
from indextables.engines.spark.jvm.attributes import columns_in
from indextables.engines.spark.place.tables import SparkTable
from indextables.engines.spark.write.fit import (
    fit,
    frame_schema,
    not_null,
    promises_in_words,
    spark_type,
)
from indextables.engines.spark.write.key_ranges import keys_of
from indextables.engines.spark.write.native_write import NativeWriter
from indextables.log.commit.intent import CommitPlan, Upsert
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Action, Metadata, Txn
from indextables.ops.keyed.files import rule_of
from indextables.ops.shared.commit import CommitResult, commit, config_for, is_done, write_target
from indextables.ops.shared.schema import evolved, merged_schema
from indextables.plan.merge_rule import MergeMode, MergeRule


@dataclass(frozen=True)
class KeyedUpsert:
    """Rows for a table with a record key, and how they are written."""

    session: SparkSession
    table: SparkTable
    operation: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    parquet_options: Mapping[str, str] = field(default_factory=dict)
    merge_schema: bool = False
    assign: bool = False
    """Convert values as SQL's INSERT does, instead of widening them only."""
    txn: Txn | None = None
    derived: bool = False
    """The rows were computed from rows of this table."""

    def run(self, frame: DataFrame) -> CommitResult:
        """Returns one commit; the rows are computed once, however often it has to be planned.

        DuplicateKeyError if two rows have one key: which of them is newer, the data does not say.
        """
        snapshot = self.table.log.snapshot()
        config_for(snapshot.properties, self.settings)
        rule_of(snapshot.metadata, self.operation.lower())
        if is_done(snapshot, self.txn):
            return CommitResult(snapshot.version, self.operation, committed=False)
        with kept(frame) as rows, promises_in_words():
            return commit(self.table.log, lambda now: self._plan(now, rows), snapshot)

    def _plan(self, snapshot: Snapshot, rows: DataFrame) -> CommitPlan:
        metadata = snapshot.metadata
        if self.merge_schema:
            metadata = evolved(metadata, merged_schema(metadata.schema, frame_schema(rows)))
        rule = MergeRule.of(metadata.properties)
        given = _given(rows, metadata.schema, rule)
        fitted = fit(rows, given, merge=self.merge_schema, assign=self.assign)
        keys = keys_of(fitted, metadata.schema, rule.key)
        if not keys.are_distinct:
            refuse_repeated_keys(fitted, rule.key)
        target = keyed_target(self.session, self.table.place, snapshot, keys.filter)
        changes = with_moves(_changes(target, fitted, given, metadata), metadata)
        is_partial = len(given.fields) < len(metadata.schema.fields)
        target_of = write_target(
            metadata, snapshot.version, config_for(metadata.properties, self.settings)
        )
        writer = KeyedWriter(
            NativeWriter(self.session, self.table.place, self.parquet_options),
            snapshot,
            target_of,
            rule.key,
            tuple(given.names) if is_partial else None,
        )
        with kept(changes) as found:
            files = writer.write(found)
        changed: tuple[Action, ...] = () if metadata == snapshot.metadata else (metadata,)
        return CommitPlan(
            Upsert(
                keys.condition,
                files.groups,
                inserted=keys.condition if files.bases.adds else None,
                partial=is_partial,
                derived=self.derived,
            ),
            self.operation,
            (*changed, *((self.txn,) if self.txn else ()), *files.adds),
            metrics=files.metrics,
        )


def _given(rows: DataFrame, schema: StructType, rule: MergeRule) -> StructType:
    """Returns the columns that the rows set: where columns are merged, some may be left out."""
    if rule.mode is not MergeMode.COLUMNS:
        return schema
    names = {name.lower() for name in (*rows.columns, *rule.key)}
    return StructType(tuple(f for f in schema if f.name.lower() in names))


def _changes(target: Target, rows: DataFrame, given: StructType, metadata: Metadata) -> DataFrame:
    """Returns each row as an update where its key is in the table, and as an insert where it is not."""
    source = rows.select("*", F.lit(True).alias(IN_SOURCE))
    mine, theirs = columns_in(target.frame), columns_in(source)
    key = MergeRule.of(metadata.properties).key
    same = reduce(Column.__and__, (mine[name] == theirs[name] for name in key))
    clauses = [
        Clause("update", "both", values=dict(_updated(mine, theirs, given, metadata))),
        Clause("insert", "source", values=dict(_inserted(theirs, metadata.schema))),
    ]
    pairs = joined(target, source, same, ["source"])
    return changed_rows(pairs, replace(target, schema=metadata.schema), clauses)


def _updated(
    old: Mapping[str, Column], new: Mapping[str, Column], given: StructType, metadata: Metadata
) -> Iterator[tuple[str, Column]]:
    """Yields the row as it is then. What is not given is needed only of a row that may move."""
    key = MergeRule.of(metadata.properties).key
    may_move = any(n in metadata.partition_columns and n not in key for n in given.names)
    for column in metadata.schema:
        if column.name in new:
            yield column.name, new[column.name]
        elif column.name in old and (may_move or column.name in metadata.partition_columns):
            yield column.name, old[column.name]


def _inserted(new: Mapping[str, Column], schema: StructType) -> Iterator[tuple[str, Column]]:
    """Yields a row of its own: what is not given is NULL, which stops the job where it must not be."""
    for column in schema:
        nothing = F.lit(None).cast(spark_type(column.type))
        missing = nothing if column.nullable else not_null(nothing, column.name)
        yield column.name, new.get(column.name, missing)
