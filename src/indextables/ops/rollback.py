"""One commit undone, and nothing else: what it added goes, what it removed comes back.

That is possible as long as nothing builds on it. Its files must be as the commit left them, in a table with
a record key its slices, too, and no row written since may have taken a key that would come back. What was
done later and has itself been undone is not in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.source import FileMask, as_mask
from indextables.errors import (
    CommitConflictError,
    LogCorruptedError,
    SchemaEvolutionError,
    VersionNotFoundError,
)
from indextables.log.commit.conflict import Winner
from indextables.log.commit.intent import CommitPlan, Restore
from indextables.log.open.load import is_missing
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.restore import adds_of, check_kept, has_grown_from, metrics, outside, removes_of
from indextables.ops.shared.commit import CommitResult, commit
from indextables.plan.merge_rule import MergeRule


def rollback(log: TransactionLog, version: int) -> CommitResult:
    """Commits the table without what this one version did; later commits keep what they did.

    The schema stays as it is now: a column the commit added is NULL in all rows that are left. What an
    application has committed (`txn`) stays committed. CommitConflictError names the later version that
    builds on this one; `restore` goes back behind both.
    """
    newest = log.snapshot()
    if not 1 <= version <= newest.version:
        what = (
            "before version 0 there was no table" if version == 0 else f"the newest is {newest.version}"
        )
        raise VersionNotFoundError(
            f"there is no version {version} to undo: {what}",
            hint="history() lists the versions there are",
            version=version,
        )
    before = log.snapshot(version - 1)
    return commit(log, lambda now: plan_rollback(log, now, before), newest)


def plan_rollback(log: TransactionLog, now: Snapshot, before: Snapshot) -> CommitPlan:
    """Returns the removes and adds that undo, in `now`, the commit that followed `before`."""
    undone, *later = _changes(log, before, now)
    _check_schema(undone, now)
    change = _Change(undone, now)
    if in_the_way := change.touched | change.taken_keys:
        raise _blocked(undone, later, in_the_way)
    removes = removes_of(undone.after, change.added, data_change=change.changes_rows)
    adds = adds_of(before, now.metadata, change.taken, data_change=change.changes_rows)
    check_kept(log, now, before.version, adds)
    return CommitPlan(
        Restore(),
        "ROLLBACK",
        (*removes, *adds),
        parameters={"version": undone.version, "operation": undone.info.operation},
        metrics=metrics(removes, adds),
    )


def _changes(log: TransactionLog, before: Snapshot, now: Snapshot) -> list[Winner]:
    """Returns what the commit to undo did, and each one after it."""
    try:
        return [w for w in log.changes_after(before) if w.version <= now.version]
    except LogCorruptedError as error:
        if not is_missing(error):
            raise
        raise VersionNotFoundError(
            f"version {before.version + 1} cannot be undone: commits from it on were cleaned up meanwhile",
            hint="history() lists the versions there are",
            version=before.version + 1,
        ) from error


def _check_schema(undone: Winner, now: Snapshot) -> None:
    if not has_grown_from(undone.before.metadata, now.metadata):
        raise SchemaEvolutionError(
            f"the table has other columns than before version {undone.version}",
            hint=f"restore(version={undone.before.version}) brings both the columns and the rows back",
            version=undone.version,
        )
    if undone.changes_metadata and undone.adds.num_rows == 0 and not undone.removed:
        raise SchemaEvolutionError(
            f"version {undone.version} changed only what the table is, and a schema can only grow",
            hint="leave the column unused, or write a new table without it",
            version=undone.version,
        )


def _blocked(undone: Winner, later: Sequence[Winner], files: frozenset[str]) -> CommitConflictError:
    """Returns names the newest commit that is to blame for what these files have become."""
    guilty = [w for w in later if files & _keys(w)]
    by = f"version {guilty[-1].version} ({guilty[-1].info.operation})" if guilty else "a later commit"
    first = f"; or undo version {guilty[-1].version} first" if guilty else ""
    return CommitConflictError(
        f"version {undone.version} cannot be undone alone: {by} has changed the same files, slices or "
        f"keys since, such as {min(files)!r}",
        hint=f"restore(version={undone.before.version}) goes back behind both{first}",
        version=undone.version,
        blocked_by=guilty[-1].version if guilty else None,
    )


def _keys(winner: Winner) -> frozenset[str]:
    return winner.removed.union(winner.adds.column("key").to_pylist())


@dataclass(frozen=True)
class _Change:
    """What a commit did, by the files before and after it, seen from a later version."""

    commit: Winner
    now: Snapshot

    @cached_property
    def added(self) -> FileMask:
        """Of the files after it, those that were not there before."""
        return outside(self.commit.after, self.commit.before)

    @cached_property
    def removed(self) -> FileMask:
        """Of the files before it, those that were not there after it."""
        return outside(self.commit.before, self.commit.after)

    @cached_property
    def taken(self) -> FileMask:
        """Of the files before it, those it removed and those whose entry it replaced."""
        replaced = pa.array(sorted(self.commit.reanalyzed), pa.string())
        return self.removed | as_mask(pc.is_in(self.commit.before.column("key"), replaced))

    @cached_property
    def changes_rows(self) -> bool:
        """Returns False if rows only moved between files."""
        return bool(self.commit.dropped or pc.any(self.commit.adds.column("data_change")).as_py())

    @cached_property
    def touched(self) -> frozenset[str]:
        """Returns files of the commit, or of its slices, that are no longer as the commit left them."""
        then, now = self._files(self.commit.after), self._files(self.now)
        return then ^ now

    def _files(self, snapshot: Snapshot) -> frozenset[str]:
        """Of the files the commit touched, and of all in the slices it touched, those in a snapshot."""
        commit = self.commit
        written = commit.adds.column("file_group").drop_null().to_pylist()
        groups = commit.before.groups_of(commit.removed).union(written)
        keys = snapshot.column("key")
        mine = pc.or_(
            pc.is_in(keys, pa.array(sorted(_keys(commit)), pa.string())),
            pc.is_in(snapshot.column("file_group"), pa.array(sorted(groups), pa.string())),
        )
        return frozenset(keys.filter(mine).to_pylist())

    @cached_property
    def taken_keys(self) -> frozenset[str]:
        """Returns files by which a row may have become visible since with the key of a row that would come back.

        They hold newer rows, or held a delete of older ones.
        """
        key = MergeRule.of(self.now.properties).key
        revived = list(self._revived()) if key and self.changes_rows else []
        if not revived:
            return frozenset()
        after = replace(self.commit.after, metadata=self.now.metadata)
        found: set[str] = set()
        for snapshot, mask in (
            (self.now, outside(self.now, after) & ~_deletes(self.now)),
            (after, self._undone_deletes()),
        ):
            overlap = [_overlap(revived, snapshot, name) for name in key]
            taken = np.logical_and.reduce([mask, *overlap])
            found.update(snapshot.column("key").filter(pa.array(taken)).to_pylist())
        return frozenset(found)

    def _undone_deletes(self) -> FileMask:
        """Of the files after the commit, delete logs that have been taken out of a slice that lives on."""
        after, now = self.commit.after, self.now
        stayed = now.column("file_group").filter(pa.array(~outside(now, after)))
        lives_on = as_mask(pc.is_in(after.column("file_group"), stayed.combine_chunks()))
        return outside(after, now) & _deletes(after) & lives_on

    def _revived(self) -> Iterator[tuple[Snapshot, FileMask]]:
        """Yields the files with the keys of such rows: those it removed, and delete logs it added."""
        for snapshot, mask in (
            (self.commit.before, self.removed),
            (self.commit.after, self.added & _deletes(self.commit.after)),
        ):
            if mask.any():
                yield replace(snapshot, metadata=self.now.metadata), mask


def _deletes(snapshot: Snapshot) -> FileMask:
    return as_mask(pc.equal(snapshot.column("block"), "delete"))


def _overlap(revived: Sequence[tuple[Snapshot, FileMask]], files: Snapshot, name: str) -> FileMask:
    """Returns one bit per file: between its bounds lies a value that the revived files may have."""
    theirs = files.index().column((name,))
    mine = [(snapshot.index().column((name,)), pa.array(mask)) for snapshot, mask in revived]
    low = _extreme([stats.lo.filter(mask) for stats, mask in mine], "min")
    high = _extreme([stats.hi.filter(mask) for stats, mask in mine], "max")
    if low is None or high is None:
        return np.ones(files.num_files, np.bool_)
    return ~(as_mask(pc.less(theirs.hi, low)) | as_mask(pc.greater(theirs.lo, high)))


def _extreme(columns: Sequence[Any], which: str) -> Any | None:
    """Returns the lowest or highest of all values; None if one of them is not known."""
    values = pa.chunked_array(columns)
    return None if values.null_count else pc.min_max(values)[which]
