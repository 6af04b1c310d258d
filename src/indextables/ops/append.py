"""Appends rows: new splits in one commit, for which nothing but the schema is read."""

from __future__ import annotations

from collections.abc import Mapping

from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Action, Metadata, Txn
from indextables.ops.keyed.upsert import upsert
from indextables.ops.shared.commit import CommitResult, commit, config_for, is_done, write_target
from indextables.ops.shared.executor import Executor
from indextables.ops.shared.schema import evolved, fit_to_current, merged_schema
from indextables.parquet.write.write import Written
from indextables.plan.merge_rule import RECORD_KEY


def append(
    log: TransactionLog,
    executor: Executor,
    data: object,
    *,
    merge_schema: bool = False,
    derived: bool = False,
    options: Mapping[str, object] | None = None,
    txn: Txn | None = None,
) -> CommitResult:
    """Commits the rows of `data`; commits nothing if there are none and nothing else changes.

    With `txn`, a batch that this application has already committed is not committed again. A table with
    a record key holds each key once, so there an append is an upsert.
    """
    snapshot = log.snapshot()
    if RECORD_KEY in snapshot.properties:
        return upsert(
            log,
            executor,
            data,
            merge_schema=merge_schema,
            derived=derived,
            options=options,
            txn=txn,
            operation="APPEND",
        )
    config = config_for(snapshot.properties, options)
    if is_done(snapshot, txn):
        return CommitResult(snapshot.version, "APPEND", committed=False)
    prepared = executor.prepare(data)
    metadata = snapshot.metadata
    if merge_schema:
        incoming = executor.source_schema(prepared)
        metadata = evolved(metadata, merged_schema(metadata.schema, incoming))
    target = write_target(metadata, snapshot.version, config)
    written = executor.write(prepared, target, merge=merge_schema)
    return commit(log, lambda now: plan_append(now, metadata, written, txn), snapshot)


def plan_append(
    snapshot: Snapshot, written_with: Metadata, written: Written, txn: Txn | None = None
) -> CommitPlan:
    """Returns the commit for rows written with this metadata, whatever the table has become since."""
    metadata, adds = fit_to_current(snapshot.metadata, written_with, written.adds)
    actions: tuple[Action, ...] = (*metadata, *((txn,) if txn else ()), *adds)
    return CommitPlan(Append(), "APPEND", actions, metrics=written.metrics)
