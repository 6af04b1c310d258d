"""Brings back the whole table as it was at an older version.

A new version is committed, so no history is lost and a restore can itself be undone. Files come back
as they were, with the `seq`, slice, tags and statistics they had. What an application has committed
(`txn`) stays committed, so a stream does not send its batches again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats.columns import FileMask
from indextables.errors import ObjectNotFoundError, SchemaEvolutionError
from indextables.log.commit.intent import CommitPlan, Restore
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Add, Metadata, Remove
from indextables.ops.shared.commit import CommitResult, commit
from indextables.ops.shared.schema import evolved
from indextables.plan.merge_rule import MergeRule

_THREADS: Final = 8
_SHOWN: Final = 5


def restore(log: TransactionLog, target: Snapshot) -> CommitResult:
    """Commits the files of `target`, an older version of this table, as the whole content of the table.

    The result is exactly that version even if others commit meanwhile; the files are then compared again.
    A schema that has only grown since stays, and restored rows have NULL in newer columns. If the table
    has been replaced since, the columns, partitions and properties of that version come back as well.
    ObjectNotFoundError if a vacuum may have deleted a file that is needed.
    """
    return commit(log, lambda now: plan_restore(log, now, target), log.snapshot())


def plan_restore(log: TransactionLog, now: Snapshot, target: Snapshot) -> CommitPlan:
    """Returns the commit that turns `now` into `target`."""
    metadata = _metadata(now.metadata, target.metadata)
    removes = removes_of(now, outside(now, target))
    adds = adds_of(target, metadata or now.metadata, outside(target, now))
    check_kept(log, now, target.version, adds)
    return CommitPlan(
        Restore(),
        "RESTORE",
        (*(() if metadata is None else (metadata,)), *removes, *adds),
        parameters={"version": target.version},
        metrics=metrics(removes, adds),
    )


def _metadata(now: Metadata, then: Metadata) -> Metadata | None:
    """Returns the metadata the table needs to hold files of that version; None if it can stay as it is."""
    if has_grown_from(then, now):
        return None
    known = {**now.past_schemas, now.schema_id: now.schema, **then.past_schemas}
    past = {number: schema for number, schema in known.items() if number != then.schema_id}
    return replace(then, past_schemas=past)


def has_grown_from(then: Metadata, now: Metadata) -> bool:
    """Returns True if every file of that time can be read as a file of the table now, with the same meaning."""
    if then.partition_columns != now.partition_columns:
        return False
    if MergeRule.of(then.properties) != MergeRule.of(now.properties):
        return False
    try:
        return evolved(then, now.schema).schema == now.schema
    except SchemaEvolutionError:
        return False


def outside(snapshot: Snapshot, other: Snapshot) -> FileMask:
    """Returns one bit per file of `snapshot`, True if it is not a file of the other snapshot."""
    found: FileMask = ~np.asarray(
        pc.is_in(snapshot.column("key"), other.column("key").combine_chunks())
    )
    return found


def removes_of(snapshot: Snapshot, mask: FileMask, *, data_change: bool = True) -> tuple[Remove, ...]:
    """Returns the actions that take these files out of the table."""
    keys = snapshot.column("key").filter(pa.array(mask)).to_pylist()
    return tuple(Remove(key, data_change=data_change) for key in keys)


def adds_of(
    snapshot: Snapshot, metadata: Metadata, mask: FileMask, *, data_change: bool = True
) -> tuple[Add, ...]:
    """Returns the actions that put these files back as they were, with statistics in the types columns have now."""
    splits = replace(snapshot, metadata=metadata).splits(mask)
    return tuple(replace(split.to_add(), data_change=data_change) for split in splits)


def metrics(removes: Sequence[Remove], adds: Sequence[Add]) -> dict[str, int]:
    """Returns the numbers that history shows."""
    return {
        "numRemovedFiles": len(removes),
        "numRestoredFiles": len(adds),
        "numRestoredBytes": sum(add.size or 0 for add in adds),
    }


def check_kept(log: TransactionLog, now: Snapshot, version: int, adds: Sequence[Add]) -> None:
    """Raises ObjectNotFoundError unless every file is there and no running vacuum may delete it."""
    keys = {add.path for add in adds}
    lowest = now.min_read_version
    if version < lowest and keys:
        # A vacuum deletes files that no version from `lowest` on has, perhaps at this moment.
        lost = keys - log.kept_since(lowest)
        if lost:
            raise _gone(lost, version, f"a vacuum has given up versions below {lowest}")
    with ThreadPoolExecutor(_THREADS, "indextables-restore") as pool:
        present = dict(zip(keys, pool.map(lambda key: _exists(log, key), keys), strict=True))
    if missing := [key for key, is_there in present.items() if not is_there]:
        raise _gone(missing, version, "they are not in the store any more")


def _exists(log: TransactionLog, key: str) -> bool:
    try:
        log.store.head(key)
    except ObjectNotFoundError:
        return False
    return True


def _gone(keys: Iterable[str], version: int, why: str) -> ObjectNotFoundError:
    names = sorted(keys)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ObjectNotFoundError(
        f"files of version {version} cannot be brought back, {why}: "
        + ", ".join(map(repr, islice(names, _SHOWN)))
        + more,
        hint="restore a newer version; Table.scan(version=…) shows whether it can still be read",
        version=version,
        files=tuple(names),
    )
