"""Overwrites of a table with a record key: new slices, and the rows they replace are gone by metadata or log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import Constant, Predicate
from indextables.core.predicate.to_sql import to_spark_sql
from indextables.core.prune.source import FileMask
from indextables.engines.spark.change.clauses import Clause
from indextables.engines.spark.change.keyed_changes import whole_slices
from indextables.engines.spark.change.keyed_files import (
    KeyedFiles,
    KeyedWriter,
    keyed_target,
    refuse_repeated_keys,
    with_moves,
)
from indextables.engines.spark.change.rows import changed_rows, kept
from indextables.engines.spark.jvm.attributes import quoted
from indextables.engines.spark.place.tables import SparkTable
from indextables.engines.spark.write.executor import SparkExecutor
from indextables.engines.spark.write.file_rows import read_groups
from indextables.engines.spark.write.native_write import NativeWriter
from indextables.errors import DuplicateKeyError
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Metadata, Remove, Txn
from indextables.ops.keyed.files import metrics_of, rule_of
from indextables.ops.shared.commit import (
    CommitResult,
    Condition,
    SamePartitions,
    commit,
    config_for,
    is_done,
    write_target,
)
from indextables.ops.shared.schema import evolved, merged_schema, settle
from indextables.parquet.write.write import WriteTarget, Written, as_new_groups
from indextables.plan.merge_rule import MergeRule


@dataclass(frozen=True, slots=True)
class KeyedExecutor(SparkExecutor):
    """Spark for tables that may have a record key."""

    def write_keyed(
        self,
        data: DataFrame,
        target: WriteTarget,
        key: Sequence[str],
        *,
        merge: bool = False,
        within: Predicate | None = None,
    ) -> Written:
        """Returns the data as new slices.

        DuplicateKeyError, and nothing left behind, if a key is there twice.
        """
        written = self.write(data, target, merge=merge, within=within)
        try:
            if written.adds:
                # What was written is what is checked: the data may come out differently another time.
                refuse_repeated_keys(self.written_keys(written, target, key), key)
        except DuplicateKeyError:
            for add in written.adds:
                self.place.store.delete(add.path)
            raise
        return as_new_groups(written)

    def written_keys(self, written: Written, target: WriteTarget, key: Sequence[str]) -> DataFrame:
        """Returns the keys in these files."""
        rows = read_groups(self.session, self.place, [written.adds], target)
        return rows.select(*(F.col(quoted(name)) for name in key))


@dataclass(frozen=True)
class KeyedOverwrite:
    """Rows that take the place of some rows of the table, and of all rows that have their keys."""

    executor: KeyedExecutor
    table: SparkTable
    replaces: Condition | SamePartitions
    settings: Mapping[str, Any] = field(default_factory=dict)
    merge_schema: bool = False
    txn: Txn | None = None

    def run(self, frame: DataFrame) -> CommitResult:
        """Returns one commit; PredicateError if a row of the data lies outside of what is replaced."""
        snapshot = self.table.log.snapshot()
        config = config_for(snapshot.properties, self.settings)
        key = rule_of(snapshot.metadata, "overwrite").key
        if is_done(snapshot, self.txn):
            return CommitResult(snapshot.version, "OVERWRITE", committed=False)
        metadata = snapshot.metadata
        if self.merge_schema:
            incoming = self.executor.source_schema(frame)
            metadata = evolved(metadata, merged_schema(metadata.schema, incoming))
        target = write_target(metadata, snapshot.version, config)
        within = None
        if isinstance(self.replaces, Condition):
            within = self.replaces.bound(snapshot)
        written = self.executor.write_keyed(frame, target, key, merge=self.merge_schema, within=within)
        condition = self.replaces
        if isinstance(condition, SamePartitions):
            condition = condition.of(written, metadata)
        new = _New(written, metadata, target)
        return commit(self.table.log, lambda now: self._plan(now, new, condition), snapshot)

    def _plan(self, snapshot: Snapshot, new: _New, condition: Condition) -> CommitPlan:
        bound = condition.bound(snapshot)
        metadata, adds = settle(snapshot.metadata, new.metadata, new.written.adds)
        dropped: FileMask = np.ones(snapshot.num_files, np.bool_)
        if bound is not None:
            dropped = whole_slices(snapshot, bound)
        gone = self._deleted(snapshot.subset(~dropped), new, bound)
        removed = snapshot.subset(dropped).column("key").to_pylist()
        return CommitPlan(
            Rewrite(bound, inserted=Constant(True) if adds else None),
            "OVERWRITE",
            (
                *metadata,
                *((self.txn,) if self.txn else ()),
                *(Remove(key) for key in removed),
                *gone.adds,
                *adds,
            ),
            parameters=condition.parameters,
            metrics={
                **metrics_of(gone.deletes, new.written),
                "numOutputRows": new.written.metrics["numOutputRows"],
                "numRemovedFiles": len(removed),
                "numTouchedGroups": len(gone.groups),
            },
        )

    def _deleted(self, rest: Snapshot, new: _New, bound: Predicate | None) -> KeyedFiles:
        """Delete logs for the other rows that are replaced."""
        if not rest.num_files:
            return KeyedFiles()
        key = MergeRule.of(rest.properties).key
        target = keyed_target(self.executor.session, self.table.place, rest)
        # with no condition every row is replaced, and no file is left to look into
        parts = [] if bound is None else [target.frame.where(F.expr(to_spark_sql(bound)))]
        if new.written.adds:
            keys = self.executor.written_keys(new.written, new.target, key)
            same = target.frame.join(keys, on=[*key], how="left_semi")
            parts.append(same.select(*(F.col(quoted(n)) for n in target.frame.columns)))
        rows = [changed_rows(part, target, [Clause("delete", "target")]) for part in parts]
        changes = reduce(DataFrame.union, rows).dropDuplicates([*target.identity])
        config = config_for(rest.properties, self.settings)
        place = self.executor.place
        writer = KeyedWriter(
            NativeWriter(self.executor.session, place, self.executor.parquet_options),
            rest,
            write_target(rest.metadata, rest.version, config),
            key,
        )
        with kept(with_moves(changes, rest.metadata)) as found:
            return writer.write(found)


@dataclass(frozen=True)
class _New:
    written: Written
    metadata: Metadata
    target: WriteTarget
