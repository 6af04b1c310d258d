"""Creates a table together with its first rows in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from indextables.errors import TableExistsError
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata, Txn
from indextables.ops.create import check_vacant, protocol_for
from indextables.ops.keyed.upsert import write_first
from indextables.ops.shared.commit import CommitResult, config_for, write_target
from indextables.ops.shared.executor import Executor


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
