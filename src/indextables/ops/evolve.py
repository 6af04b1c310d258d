"""Changes the schema of a table: one commit adds columns and widens types."""

from __future__ import annotations

from indextables.core.types import StructType
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.shared.commit import CommitResult, commit
from indextables.ops.shared.schema import evolved


def evolve(log: TransactionLog, wanted: StructType) -> CommitResult:
    """Commits this schema; commits nothing if the table has it already."""
    return commit(log, lambda now: plan_evolution(now, wanted), log.snapshot())


def plan_evolution(snapshot: Snapshot, wanted: StructType) -> CommitPlan:
    """Returns the commit that makes `wanted` the schema; SchemaEvolutionError lists each reason against it."""
    changed = evolved(snapshot.metadata, wanted)
    actions = () if changed == snapshot.metadata else (changed,)
    added = [field.name for field in changed.schema if field.name not in snapshot.schema.names]
    return CommitPlan(ChangeSchema(), "CHANGE SCHEMA", actions, parameters={"addedColumns": added})
