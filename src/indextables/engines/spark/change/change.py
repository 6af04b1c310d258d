"""DELETE, UPDATE and MERGE in Spark: one commit, planned anew when another writer was first."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from indextables.config import Config
from indextables.engines.spark.change.copies import Counted, rows_with_places, write_copies
from indextables.engines.spark.change.keyed_changes import KeyedChangePlanner
from indextables.engines.spark.change.merge_keys import narrowed
from indextables.engines.spark.change.reading import Reading
from indextables.engines.spark.place.tables_and_options import SparkTable, open_table, settings_of
from indextables.engines.spark.statement.statements import Change
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.by_key import SparkChange
from indextables.engines.spark.write.changed_rows import check_one_change_each, kept
from indextables.engines.spark.write.executor import SparkExecutor
from indextables.engines.spark.write.file_rows import row_counts
from indextables.engines.spark.write.native_write import NativeWriter
from indextables.errors import SchemaEvolutionError
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Remove
from indextables.ops.delete_overwrite import Condition, delete
from indextables.ops.shared.commit import CommitResult, commit, config_for, write_target
from indextables.parquet.write.write import Written
from indextables.plan.merge_rule import RECORD_KEY
from indextables.plan.slices import shown_records

_logger: Final = logging.getLogger(__name__)
_COUNTS: Final = {
    "num_updated_rows": "numUpdatedRows",
    "num_deleted_rows": "numDeletedRows",
    "num_inserted_rows": "numInsertedRows",
}


def change(session: SparkSession, statement: Change) -> DataFrame:
    """Carries out a DELETE, UPDATE or MERGE; the answer has the columns that Delta's has."""
    plan = statement.plan
    if plan.nodeName() == "MergeIntoTable" and seam.merges_schemas(plan):
        raise SchemaEvolutionError(
            "MERGE WITH SCHEMA EVOLUTION is not possible on a table of this format",
            hint="add the columns first: write an empty DataFrame with option('mergeSchema', 'true')",
        )
    table = open_table(session, statement.path)
    settings = settings_of(session)
    table = replace(table, log=table.log.configured(Config.of(write=settings).validate()))
    snapshot = table.log.snapshot()
    reading = Reading(session, table, snapshot, plan)
    result = _deleted(reading, settings) or _changed(reading, settings)
    _logger.info(
        "%s: version %d, %s, %s",
        statement.path,
        result.version,
        result.operation,
        dict(result.metrics),
    )
    return _answer(session, result, reading.operation)


def _deleted(reading: Reading, settings: Mapping[str, Any]) -> CommitResult | None:
    """Returns a DELETE whose condition statistics can answer: whole files go without being opened."""
    if reading.operation != "DELETE" or not reading.is_plain:
        return None
    executor = SparkExecutor(reading.session, reading.table.place)
    condition = Condition(reading.predicate, shown=reading.shown)
    return delete(reading.table.log, executor, condition, options=settings)


def _changed(reading: Reading, settings: Mapping[str, Any]) -> CommitResult:
    """Returns a change that only Spark can compute."""
    session, table, snapshot = reading.session, reading.table, reading.snapshot
    if RECORD_KEY not in snapshot.properties:
        return commit(table.log, CopyPlanner(session, table, reading.plan, settings), snapshot)
    with ExitStack() as until:
        work = SparkChange(NativeWriter(session, table.place), assign=False, until=until)
        planner = KeyedChangePlanner(work, table, reading.plan, settings)
        return commit(table.log, planner, snapshot, discard=work.discard)


@dataclass
class CopyPlanner:
    """Copies the touched files with the change made, against whatever snapshot is the newest."""

    session: SparkSession
    table: SparkTable
    plan: Any
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the removes and adds that turn this snapshot into the one asked for."""
        reading = Reading(self.session, self.table, snapshot, self.plan)
        gone = reading.whole
        places = rows_with_places(self.session, self.table.place, snapshot, ~gone)
        whole = replace(places, frame=reading.named(places.frame))
        with narrowed(reading, whole) as few:
            rows, clauses = few.reading.changes(few.target)
            with kept(rows) as found:
                changes = found
                if reading.operation == "MERGE":
                    changes = check_one_change_each(found, few.target, clauses)
                counted = Counted.of(changes, snapshot)
                written = self._written(snapshot, changes, counted)
        removed = snapshot.subset(counted.files | gone).column("key").to_pylist()
        return CommitPlan(
            Rewrite(reading.where),
            reading.operation,
            (*(Remove(key) for key in removed), *written.adds),
            parameters=reading.shown,
            metrics=_metrics(counted, written, len(removed), shown_records(snapshot, gone) or 0)
            | few.metrics,
        )

    def _written(self, snapshot: Snapshot, changes: DataFrame, counted: Counted) -> Written:
        if not counted.by_action:
            return Written()
        target = write_target(
            snapshot.metadata, snapshot.version, config_for(snapshot.properties, self.settings)
        )
        writer = NativeWriter(self.session, self.table.place)
        files = rows_with_places(self.session, self.table.place, snapshot, counted.files).frame
        held = sum(row_counts(self.table.place.store, snapshot.splits(counted.files)).values())
        return write_copies(writer, changes, counted, files, target, held=held)


def _metrics(counted: Counted, written: Written, removed: int, gone: int) -> dict[str, int]:
    changed = {action: counted.by_action.get(action, 0) for action in ("update", "delete", "insert")}
    output = written.metrics.get("numOutputRows", 0)
    return {
        **written.metrics,
        "numRemovedFiles": removed,
        "numUpdatedRows": changed["update"],
        "numDeletedRows": changed["delete"] + gone,
        "numInsertedRows": changed["insert"],
        "numCopiedRows": output - changed["update"] - changed["insert"],
    }


def _answer(session: SparkSession, result: CommitResult, operation: str) -> DataFrame:
    counts = {name: result.metrics.get(metric, 0) for name, metric in _COUNTS.items()}
    row = {"num_affected_rows": sum(counts.values())}
    if operation == "MERGE":
        row |= counts
    schema = T.StructType([T.StructField(name, T.LongType()) for name in row])
    return session.createDataFrame([tuple(row.values())], schema)
