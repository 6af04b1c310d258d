"""What a verb did, for the user who called it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import CommitConflictError
from indextables.log.commit.attempt import Planner
from indextables.log.commit.intent import CommitPlan
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Txn


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The table's version after the call; `committed` is False if there was nothing to do."""

    version: int
    operation: str
    metrics: Mapping[str, Any] = field(default_factory=dict)
    committed: bool = True
    skipped: frozenset[str] = frozenset()
    """Splits that were left out because another writer replaced them meanwhile."""


def commit(log: TransactionLog, planner: Planner, snapshot: Snapshot) -> CommitResult:
    """Commits what the planner plans on the newest snapshot, and tells what it was.

    CommitConflictError if a vacuum has meanwhile been told that nobody works on this snapshot:
    the files the plan names may be gone, even if the plan itself was made anew.
    """
    last: list[CommitPlan] = []

    def remember(now: Snapshot) -> CommitPlan:
        if snapshot.version < now.min_read_version:
            raise CommitConflictError(
                f"this write began at version {snapshot.version}, and a vacuum has since removed "
                f"files of writers that began below {now.min_read_version}",
                hint="start again from the current version",
                read_version=snapshot.version,
                min_read_version=now.min_read_version,
            )
        last.append(planner(now))
        return last[-1]

    done = log.commit(remember, snapshot)
    plan = last[-1].without(done.skipped)
    return CommitResult(done.version, plan.operation, plan.all_metrics(), not done.no_op, done.skipped)


def is_done(snapshot: Snapshot, txn: Txn | None) -> bool:
    """Whether the application has committed this batch, or a later one, before."""
    done = snapshot.txns.get(txn.app_id) if txn else None
    return txn is not None and done is not None and done.version >= txn.version
