"""Insert or replace rows by their key: a delta file for every slice that has some, new slices for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from indextables.config import Config
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Predicate
from indextables.core.types import StructType
from indextables.log.commit.intent import CommitPlan, Upsert
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Action, Metadata, Txn
from indextables.ops.shared.commit import CommitResult, commit, config_for, is_done, write_target
from indextables.ops.shared.executor import ChangeByKey, Executor
from indextables.ops.shared.schema import evolved, merged_schema
from indextables.parquet.write.write import WriteTarget, Written
from indextables.plan.merge_rule import MergeRule, rule_of

NO_FILES: Final = Written.nothing()


def upsert(
    log: TransactionLog,
    executor: Executor,
    data: object,
    *,
    merge_schema: bool = False,
    derived: bool = False,
    options: Mapping[str, object] | None = None,
    txn: Txn | None = None,
    operation: str = "UPSERT",
) -> CommitResult:
    """Commits the rows of `data`, each in place of the row that has its key, if there is one.

    SchemaError for a table without a record key, DuplicateKeyError if the data repeats a key. In a table
    that merges columns the data may leave columns out: they keep their values. `derived` rows were computed
    from rows of the table, so that a change of those is a conflict.
    """
    snapshot = log.snapshot()
    config = config_for(snapshot.properties, options)
    rule_of(snapshot.properties, operation.lower())
    if is_done(snapshot, txn):
        return CommitResult(snapshot.version, operation, committed=False)
    with executor.change_by_key(executor.prepare(data), config) as change:
        planner = UpsertPlanner(change, merge_schema, derived, options, txn, operation)
        return commit(log, planner, snapshot, discard=change.discard)


@dataclass
class UpsertPlanner:
    """Places the same rows in whatever snapshot is the newest."""

    change: ChangeByKey
    merge_schema: bool = False
    derived: bool = False
    options: Mapping[str, object] | None = None
    txn: Txn | None = None
    operation: str = "UPSERT"

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the delta files and new slices that bring these rows into this snapshot."""
        metadata = snapshot.metadata
        if self.merge_schema:
            incoming = self.change.source_schema()
            metadata = evolved(metadata, merged_schema(metadata.schema, incoming))
        rows = self.change.fit(metadata, merge=self.merge_schema)
        condition = condition_in(rows.condition, metadata.schema, snapshot)
        changes = self.change.find(snapshot, rows, condition)
        target = target_for(metadata, snapshot, self.options)
        deltas = self.change.write_deltas(changes, target)
        bases = self.change.write_bases(changes, target)
        inserted = None
        if changes.inserted_keys is not None:
            inserted = condition_in(changes.inserted_keys, metadata.schema, snapshot)
        evolution: tuple[Action, ...] = () if metadata == snapshot.metadata else (metadata,)
        return CommitPlan(
            Upsert(condition, deltas.groups, inserted, partial=rows.is_partial, derived=self.derived),
            self.operation,
            (*evolution, *((self.txn,) if self.txn else ()), *deltas.adds, *bases.adds),
            metrics={
                **(NO_FILES + deltas + bases).metrics,
                **changes.metrics,
                "numTouchedGroups": len(deltas.groups),
            },
        )


def write_first(
    executor: Executor, data: object, metadata: Metadata, target: WriteTarget, config: Config
) -> Written:
    """Returns the data as all there is in a table.

    With a record key each file is a slice, and no key is there twice.
    """
    prepared = executor.prepare(data)
    if not MergeRule.of(metadata.properties).key:
        return executor.write(prepared, target)
    with executor.change_by_key(prepared, config) as change:
        try:
            return change.write_all(metadata, target, merge=False, within=None)
        except BaseException:
            change.discard()
            raise


def target_for(
    metadata: Metadata, snapshot: Snapshot, options: Mapping[str, object] | None
) -> WriteTarget:
    """Returns where the files of a change that was planned for this snapshot go."""
    return write_target(metadata, snapshot.version, config_for(metadata.properties, options))


def condition_in(condition: Predicate, schema: StructType, snapshot: Snapshot) -> Predicate:
    """Returns a condition on columns of `schema` for the statistics of this snapshot.

    That schema may be wider than the snapshot's: this write may be what widens it.
    """
    return condition if schema == snapshot.schema else bind(condition, snapshot.schema)
