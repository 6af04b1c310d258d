"""Delete and overwrite: splits whose statistics prove that every row matches are dropped, others are rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import may_match, must_match
from indextables.core.stats.columns import FileMask
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata, Remove, Txn
from indextables.ops.keyed.delete_overwrite import delete_by_key, overwrite_by_key
from indextables.ops.shared.commit import (
    CommitResult,
    Condition,
    SamePartitions,
    commit,
    config_for,
    is_done,
    write_target,
)
from indextables.ops.shared.executor import Executor
from indextables.ops.shared.schema import evolved, fit_to_current, merged_schema
from indextables.parquet.write.write import Rewritten, Written
from indextables.plan.merge_rule import RECORD_KEY
from indextables.storage.base import LogStore

__all__ = ["Condition", "RewritePlanner", "SamePartitions", "delete", "overwrite"]


def delete(
    log: TransactionLog,
    executor: Executor,
    condition: Condition,
    *,
    options: Mapping[str, object] | None = None,
) -> CommitResult:
    """Commits the table without the rows the condition is TRUE for; commits nothing if there are none."""
    snapshot = log.snapshot()
    if RECORD_KEY in snapshot.properties:
        return delete_by_key(log, executor, condition, snapshot, options)
    planner = RewritePlanner(log.store, executor, condition, "DELETE", options)
    return commit(log, planner, snapshot, discard=planner.discard)


def overwrite(
    log: TransactionLog,
    executor: Executor,
    data: object,
    condition: Condition | SamePartitions,
    *,
    merge_schema: bool = False,
    options: Mapping[str, object] | None = None,
    txn: Txn | None = None,
) -> CommitResult:
    """Commits `data` in place of the rows the condition is TRUE for.

    PredicateError, before anything is committed, if a row of `data` lies outside the condition. With
    `txn`, a batch that this application has already committed is not committed again.
    """
    snapshot = log.snapshot()
    config = config_for(snapshot.properties, options)
    if is_done(snapshot, txn):
        return CommitResult(snapshot.version, "OVERWRITE", committed=False)
    prepared = executor.prepare(data)
    if RECORD_KEY in snapshot.properties:
        return overwrite_by_key(
            log,
            executor,
            prepared,
            condition,
            snapshot,
            merge_schema=merge_schema,
            options=options,
            txn=txn,
        )
    metadata = snapshot.metadata
    if merge_schema:
        incoming = executor.source_schema(prepared)
        metadata = evolved(metadata, merged_schema(metadata.schema, incoming))
    target = write_target(metadata, snapshot.version, config)
    within = None if isinstance(condition, SamePartitions) else condition.bound(snapshot)
    written = executor.write(prepared, target, merge=merge_schema, within=within)
    if isinstance(condition, SamePartitions):
        condition = condition.of(written, metadata)
    planner = RewritePlanner(
        log.store, executor, condition, "OVERWRITE", options, written, metadata, txn
    )
    return commit(log, planner, snapshot, discard=planner.discard)


@dataclass
class RewritePlanner:
    """Plans the same change for whichever snapshot is the newest.

    Splits are immutable, so a split rewritten for one snapshot need not be rewritten for the next.
    """

    store: LogStore
    executor: Executor
    condition: Condition
    operation: str
    options: Mapping[str, object] | None = None
    written: Written = field(default_factory=Written)
    written_with: Metadata | None = None
    txn: Txn | None = None
    rewritten: dict[str, Rewritten | None] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the commit that makes the change to this snapshot."""
        bound = self.condition.bound(snapshot)
        metadata: tuple[Metadata, ...] = ()
        added = self.written.adds
        if self.written_with is not None:
            metadata, added = fit_to_current(snapshot.metadata, self.written_with, added)
        if bound is None:
            dropped, touched = np.ones(snapshot.num_files, np.bool_), {}
        else:
            index = snapshot.index()
            may, dropped = may_match(bound, index), must_match(bound, index)
            touched = self._rewrite(snapshot, bound, may & ~dropped)
        keys = [*_where(snapshot, "key", dropped), *touched]
        kept = [add for rewritten in touched.values() for add in rewritten.written.adds]
        txns = () if self.txn is None else (self.txn,)
        return CommitPlan(
            Rewrite(bound),
            self.operation,
            (*metadata, *txns, *(Remove(key) for key in keys), *kept, *added),
            parameters=self.condition.parameters,
            metrics=_metrics(snapshot, dropped, touched, self.written),
        )

    def discard(self) -> None:
        """Deletes every file that was written so far."""
        rewritten = [r.written for r in self.rewritten.values() if r is not None]
        for add in (add for written in (self.written, *rewritten) for add in written.adds):
            with suppress(Exception):
                self.store.delete(add.path)

    def _rewrite(self, snapshot: Snapshot, bound: Predicate, mask: FileMask) -> dict[str, Rewritten]:
        paths = _where(snapshot, "key", mask)
        missing = mask.copy()
        missing[mask] = [path not in self.rewritten for path in paths]
        if missing.any():
            config = config_for(snapshot.properties, self.options)
            target = write_target(snapshot.metadata, snapshot.version, config)
            found = self.executor.rewrite(snapshot, missing, bound, target)
            self.rewritten |= {path: found.get(path) for path in _where(snapshot, "key", missing)}
        results = ((path, self.rewritten[path]) for path in paths)
        return {path: result for path, result in results if result is not None}


def _where(snapshot: Snapshot, column: str, mask: FileMask) -> list[str]:
    values: list[str] = snapshot.column(column).filter(pa.array(mask)).to_pylist()
    return values


def _metrics(
    snapshot: Snapshot,
    dropped: FileMask,
    touched: Mapping[str, Rewritten],
    written: Written,
) -> dict[str, int]:
    records = pc.sum(snapshot.index().source.num_records().filter(pa.array(dropped))).as_py()
    copied = [rewritten.written.metrics for rewritten in touched.values()]
    return {
        **written.metrics,
        "numRemovedFiles": int(np.count_nonzero(dropped)) + len(touched),
        "numRewrittenFiles": len(touched),
        "numDeletedRows": (records or 0) + sum(r.removed_rows for r in touched.values()),
        "numCopiedRows": sum(metrics["numOutputRows"] for metrics in copied),
        "numAddedFiles": sum(m["numAddedFiles"] for m in (written.metrics, *copied) if m),
    }
