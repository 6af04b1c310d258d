"""UPDATE, MERGE and DELETE on a table with a record key: delta files instead of copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from indextables.core.stats.columns import FileMask
from indextables.engines.spark.change.merge_keys import narrowed
from indextables.engines.spark.change.reading import Reading
from indextables.engines.spark.place.tables_and_options import SparkTable
from indextables.engines.spark.write.by_key import (
    SparkChange,
    keyed_target,
    refuse_taken_keys,
    with_moves,
)
from indextables.engines.spark.write.changed_rows import check_one_change_each
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Remove
from indextables.ops.keyed.upsert import NO_FILES, target_for
from indextables.plan.merge_rule import MergeRule
from indextables.plan.slices import shown_records


@dataclass
class KeyedChangePlanner:
    """Plans the statement against whatever snapshot is the newest."""

    change: SparkChange
    table: SparkTable
    plan: Any
    settings: Mapping[str, object]

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the delta files and new slices that turn this snapshot into the one asked for."""
        session = self.change.writer.session
        reading = Reading(session, self.table, snapshot, self.plan)
        gone = reading.whole
        part = snapshot.subset(~gone) if gone.any() else snapshot
        plain = keyed_target(session, self.table.place, part)
        whole = replace(plain, frame=reading.named(plain.frame))
        key = MergeRule.of(snapshot.properties).key
        with narrowed(reading, whole) as few:
            rows, clauses = few.reading.changes(few.target)
            changes = self.change.computed(with_moves(rows, snapshot.metadata), part)
            if reading.operation == "MERGE":
                found = changes.found.rows
                once = check_one_change_each(found, few.target, clauses)
                if once is not found:
                    changes = self.change.computed(once, snapshot)
            if any(clause.assigned & {*key} for clause in clauses):
                refuse_taken_keys(changes.found.rows, plain, key)
        removed = snapshot.subset(gone).column("key").to_pylist()
        target = target_for(snapshot.metadata, snapshot, self.settings)
        deltas = self.change.write_deltas(changes, target)
        bases = self.change.write_bases(changes, target)
        return CommitPlan(
            Rewrite(reading.where, inserted=changes.inserted_keys),
            reading.operation,
            (*(Remove(key) for key in removed), *deltas.adds, *bases.adds),
            parameters=reading.shown,
            metrics={
                **(NO_FILES + deltas + bases).metrics,
                **changes.metrics,
                **few.metrics,
                "numDeletedRows": changes.metrics["numDeletedRows"] + self._shown(snapshot, gone),
                "numRemovedFiles": len(removed),
                "numTouchedGroups": len(deltas.groups),
            },
        )

    def _shown(self, snapshot: Snapshot, files: FileMask) -> int:
        """Returns how many rows these files show."""
        known = shown_records(snapshot, files)
        return self.change.shown_rows(snapshot.subset(files)) if known is None else known
