"""Replaces a table by one with other columns, partitions and rows, and creates one together with its first rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from indextables.errors import TableExistsError
from indextables.log.commit.intent import Append, CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata, Remove, Txn
from indextables.ops.create import check_vacant, needed_for, protocol_for
from indextables.ops.keyed.upsert import write_first
from indextables.ops.shared.commit import CommitResult, commit, config_for, write_target
from indextables.ops.shared.executor import Executor
from indextables.parquet.write.write import Written


def replace_table(
    log: TransactionLog,
    executor: Executor,
    data: object,
    metadata: Metadata,
    *,
    options: Mapping[str, object] | None = None,
) -> CommitResult:
    """Commits `data` as the whole content of the table, with the schema of `metadata`.

    Unlike an evolution this may drop and retype columns, because no older file stays part of the table.
    Older versions stay readable with the schema they had.
    """
    snapshot = log.snapshot()
    config = config_for(metadata.properties, options)
    successor = _successor(snapshot.metadata, metadata)
    target = write_target(successor, snapshot.version, config)
    written = write_first(executor, data, successor, target, config)
    return commit(log, lambda now: plan_replacement(now, metadata, written), snapshot)


def plan_replacement(snapshot: Snapshot, metadata: Metadata, written: Written) -> CommitPlan:
    """Returns the commit that replaces everything in this snapshot."""
    successor = _successor(snapshot.metadata, metadata)
    removes = tuple(Remove(key) for key in snapshot.column("key").to_pylist())
    adds = tuple(replace(add, schema_id=successor.schema_id) for add in written.adds)
    needed = needed_for(successor, snapshot.protocol)
    protocol = () if needed == snapshot.protocol else (needed,)
    return CommitPlan(
        Rewrite(None),
        "REPLACE TABLE",
        (*protocol, successor, *removes, *adds),
        metrics={**written.metrics, "numRemovedFiles": len(removes)},
    )


def _successor(current: Metadata, wanted: Metadata) -> Metadata:
    """Returns `wanted` as the next metadata of the same table, under a schema id that no older split has."""
    past = {**current.past_schemas, current.schema_id: current.schema}
    return replace(
        wanted,
        id=current.id,
        created_time=current.created_time,
        schema_id=max(past) + 1,
        past_schemas=past,
    )


# A new table with its first rows, in one commit.


def create_as(
    log: TransactionLog,
    executor: Executor,
    data: object,
    metadata: Metadata,
    *,
    options: Mapping[str, object] | None = None,
    txn: Txn | None = None,
) -> CommitResult:
    """Commits version 0 of a table with these rows.

    TableExistsError if there is a table, even if it appears while the rows are written; no file is left
    behind then.
    """
    check_vacant(log)
    config = config_for(metadata.properties, options)
    target = write_target(metadata, 0, config)
    written = write_first(executor, data, metadata, target, config)
    actions = (protocol_for(metadata), metadata, *((txn,) if txn else ()), *written.adds)
    plan = CommitPlan(Append(), "CREATE TABLE AS SELECT", actions, metrics=written.metrics)
    try:
        done = log.create(plan)
    except TableExistsError:
        # Another writer created the table, so no commit names these files.
        for add in written.adds:
            with suppress(Exception):
                log.store.delete(add.path)
        raise
    return CommitResult(done.version, plan.operation, plan.metrics)
