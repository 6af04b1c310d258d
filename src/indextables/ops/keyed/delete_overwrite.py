"""Delete and overwrite in a table with a record key: whole slices go by metadata, other rows by delete delta files.

A slice goes as a whole only if every file of it that holds rows must match: a data delta file alone never
goes, because the older rows it replaced would be there again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indextables.core.prune.evaluate import must_match
from indextables.core.stats.columns import FileMask
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata, Remove, Txn
from indextables.ops.keyed.upsert import NO_FILES, condition_in, target_for
from indextables.ops.shared.commit import CommitResult, Condition, SamePartitions, commit, config_for
from indextables.ops.shared.executor import ChangeByKey, Executor
from indextables.ops.shared.schema import evolved, fit_to_current, merged_schema
from indextables.parquet.write.write import Changes, Written
from indextables.plan.merge_rule import rule_of
from indextables.plan.slices import shown_records, whole_slices


def delete_by_key(
    log: TransactionLog,
    executor: Executor,
    condition: Condition,
    snapshot: Snapshot,
    options: Mapping[str, object] | None,
) -> CommitResult:
    """Commits the table without the rows the condition is TRUE for; nothing, if there are none."""
    with executor.change_by_key(None, config_for(snapshot.properties, options)) as change:
        planner = RemovalPlanner(change, condition, "DELETE", options)
        return commit(log, planner, snapshot, discard=change.discard)


def overwrite_by_key(
    log: TransactionLog,
    executor: Executor,
    data: object,
    condition: Condition | SamePartitions,
    snapshot: Snapshot,
    *,
    merge_schema: bool,
    options: Mapping[str, object] | None,
    txn: Txn | None,
) -> CommitResult:
    """Commits `data` in place of the rows the condition is TRUE for, and of every row with a key of `data`."""
    rule_of(snapshot.properties, "overwrite")
    config = config_for(snapshot.properties, options)
    with executor.change_by_key(data, config) as change:
        planner = RemovalPlanner(change, condition, "OVERWRITE", options, merge_schema, txn)
        return commit(log, planner, snapshot, discard=change.discard)


@dataclass
class RemovalPlanner:
    """Plans the same change against whatever snapshot is the newest; the new rows are written once."""

    change: ChangeByKey
    condition: Condition | SamePartitions
    operation: str
    options: Mapping[str, object] | None = None
    merge_schema: bool = False
    txn: Txn | None = None
    _written: tuple[Metadata, Written] | None = None

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the removes, delete delta files and new slices that turn this snapshot into the one asked for."""
        metadata, adds = self._new_rows(snapshot)
        now = metadata[0] if metadata else snapshot.metadata
        condition = self.condition
        if isinstance(condition, SamePartitions):
            condition = condition.of(adds, now)
        bound = condition.bound(snapshot)
        whole = np.ones(snapshot.num_files, np.bool_)
        if bound is not None:
            whole = whole_slices(snapshot, must_match(bound, snapshot.index()))
        changes = self.change.find_removed(snapshot, now, ~whole, bound)
        deltas = self.change.write_deltas(changes, target_for(now, snapshot, self.options))
        paths = snapshot.column("key").filter(pa.array(whole)).to_pylist()
        removes = [Remove(path) for path in (*paths, *changes.emptied)]
        inserted = None
        if changes.inserted_keys is not None:
            inserted = condition_in(changes.inserted_keys, now.schema, snapshot)
        txn = () if self.txn is None else (self.txn,)
        return CommitPlan(
            Rewrite(bound, inserted),
            self.operation,
            (*metadata, *txn, *removes, *deltas.adds, *adds.adds),
            parameters=condition.parameters,
            metrics={
                **(NO_FILES + deltas + adds).metrics,
                **self._deleted(snapshot, whole, changes),
                "numOutputRows": adds.metrics.get("numOutputRows", 0),
                "numRemovedFiles": len(removes),
                "numTouchedGroups": len(deltas.groups),
            },
        )

    def _new_rows(self, snapshot: Snapshot) -> tuple[tuple[Metadata, ...], Written]:
        """Returns the rows of an overwrite as files of this version, and the metadata they bring, if any."""
        if self.operation == "DELETE":
            return (), NO_FILES
        if self._written is None:
            metadata = snapshot.metadata
            if self.merge_schema:
                incoming = self.change.source_schema()
                metadata = evolved(metadata, merged_schema(metadata.schema, incoming))
            within = (
                None if isinstance(self.condition, SamePartitions) else self.condition.bound(snapshot)
            )
            target = target_for(metadata, snapshot, self.options)
            found = self.change.write_all(metadata, target, merge=self.merge_schema, within=within)
            self._written = (metadata, found)
        metadata, written = self._written
        brought, adds = fit_to_current(snapshot.metadata, metadata, written.adds)
        return brought, Written(adds, written.metrics)

    def _deleted(self, snapshot: Snapshot, whole: FileMask, changes: Changes) -> dict[str, int]:
        """Returns how many rows the condition was TRUE for, if that is known."""
        known = shown_records(snapshot, whole)
        if known is None and self.operation == "DELETE":
            known = self.change.shown_rows(snapshot.subset(whole))
        return {} if known is None else {"numDeletedRows": known + changes.deleted}
