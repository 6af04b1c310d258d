"""DELETE, UPDATE and MERGE on a table with a record key: logs instead of copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from indextables.core.predicate.nodes import Constant, Predicate
from indextables.core.prune.evaluate import must_match
from indextables.core.prune.source import FileMask
from indextables.engines.spark.change.keyed_files import (
    KeyedFiles,
    KeyedWriter,
    keyed_target,
    refuse_taken_keys,
    with_moves,
)
from indextables.engines.spark.change.merge_keys import narrowed
from indextables.engines.spark.change.reading import Reading
from indextables.engines.spark.change.rows import check_one_change_each, kept
from indextables.engines.spark.place.tables import SparkTable
from indextables.engines.spark.scan.merge import table_frame
from indextables.engines.spark.write.native_write import NativeWriter
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Remove
from indextables.ops.shared.commit import config_for, write_target
from indextables.plan.merge_rule import MergeRule
from indextables.plan.slices import Slices, slices_of


@dataclass
class KeyedChangePlanner:
    """Plans the statement against whatever snapshot is the newest."""

    session: SparkSession
    table: SparkTable
    plan: Any
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the logs and new slices that turn this snapshot into the one asked for."""
        reading = Reading(self.session, self.table, snapshot, self.plan)
        dropped = np.zeros(snapshot.num_files, np.bool_)
        if reading.operation == "DELETE" and reading.is_plain:
            assert reading.where is not None
            dropped = whole_slices(snapshot, reading.where)
        rest = replace(reading, snapshot=snapshot.subset(~dropped)) if dropped.any() else reading
        files, skipped = self._changed(rest)
        removed = snapshot.subset(dropped).column("key").to_pylist()
        metrics = files.metrics | {"numRemovedFiles": len(removed), **skipped}
        metrics["numDeletedRows"] += self._count(snapshot, dropped)
        return CommitPlan(
            Rewrite(reading.where, inserted=Constant(True) if files.bases.adds else None),
            reading.operation,
            (*(Remove(key) for key in removed), *files.adds),
            parameters=reading.shown,
            metrics=metrics,
        )

    def _changed(self, reading: Reading) -> tuple[KeyedFiles, Mapping[str, int]]:
        """Returns what was written, and how many files the keys of a source excluded."""
        snapshot = reading.snapshot
        if not snapshot.num_files and reading.operation != "MERGE":
            return KeyedFiles(), {}
        plain = keyed_target(self.session, self.table.place, snapshot)
        whole = replace(plain, frame=reading.named(plain.frame))
        key = MergeRule.of(snapshot.properties).key
        config = config_for(snapshot.properties, self.settings)
        writer = KeyedWriter(
            NativeWriter(self.session, self.table.place),
            snapshot,
            write_target(snapshot.metadata, snapshot.version, config),
            key,
        )
        with narrowed(reading, whole) as few:
            rows, clauses = few.reading.changes(few.target)
            with kept(with_moves(rows, snapshot.metadata)) as found:
                changes = found
                if reading.operation == "MERGE":
                    changes = check_one_change_each(found, few.target, clauses)
                if any(clause.assigned & {*key} for clause in clauses):
                    refuse_taken_keys(changes, plain, key)
                return writer.write(changes), few.metrics

    def _count(self, snapshot: Snapshot, files: FileMask) -> int:
        """Returns the rows in these slices; only those with logs have to be read for it."""
        if not files.any():
            return 0
        part = snapshot.subset(files)
        if slices_of(part) is None:
            known = part.index().source.num_records()
            if not known.null_count:
                return int(np.asarray(known).sum())
        return table_frame(self.session, self.table.place, part).count()


def whole_slices(snapshot: Snapshot, where: Predicate) -> FileMask:
    """Returns the files of all slices of which every row satisfies the bound condition."""
    slices = slices_of(snapshot) or _apart(snapshot)
    some_left = slices.having(slices.holds_rows & ~must_match(where, snapshot.index()))
    gone: FileMask = ~some_left[slices.codes]
    return gone


def _apart(snapshot: Snapshot) -> Slices:
    """Returns a table without logs: every file is a slice."""
    nothing = np.zeros(snapshot.num_files, np.int8)
    return Slices.of(snapshot.column("file_group"), nothing, nothing, snapshot.column("seq").to_numpy())
