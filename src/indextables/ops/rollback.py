"""Undoes one commit and nothing else: files it added go, files it removed come back.

That is possible as long as nothing builds on the commit. Its files must be as it left them and, in a
table with a record key, its slices too; and no row written since may have taken a key that would come
back. Later commits that have themselves been undone are not in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats.columns import FileMask, as_mask
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
    """Commits the table without what one version did; later commits keep what they did.

    The schema stays as it is: a column the commit added is NULL in all rows that remain. What an
    application has committed (`txn`) stays committed. CommitConflictError names the later version that
    builds on this one; `restore` goes back to before both.
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
    """Returns the commit that undoes, in `now`, the commit that followed `before`."""
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
    """Returns what the commit to undo did, followed by each later commit."""
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
            f"the table's columns are not what they were before version {undone.version}",
            hint=f"restore(version={undone.before.version}) brings both the columns and the rows back",
            version=undone.version,
        )
    if undone.changes_metadata and undone.adds.num_rows == 0 and not undone.removed:
        raise SchemaEvolutionError(
            f"version {undone.version} changed only the table's metadata, and a schema can only grow",
            hint="leave the column unused, or write a new table without it",
            version=undone.version,
        )


def _blocked(undone: Winner, later: Sequence[Winner], files: frozenset[str]) -> CommitConflictError:
    """Returns the error that names the newest commit that changed these files."""
    guilty = [w for w in later if files & _keys(w)]
    by = f"version {guilty[-1].version} ({guilty[-1].info.operation})" if guilty else "a later commit"
    first = f"; or undo version {guilty[-1].version} first" if guilty else ""
    return CommitConflictError(
        f"version {undone.version} cannot be undone alone: {by} has changed the same files, slices or "
        f"keys, such as {min(files)!r}",
        hint=f"restore(version={undone.before.version}) goes back to before both{first}",
        version=undone.version,
        blocked_by=guilty[-1].version if guilty else None,
    )


def _keys(winner: Winner) -> frozenset[str]:
    return winner.removed.union(winner.adds.column("key").to_pylist())


@dataclass(frozen=True)
class _Change:
    """What a commit did, by the files before and after it, as seen from a later version."""

    commit: Winner
    now: Snapshot

    @cached_property
    def added(self) -> FileMask:
        """Returns one bit per file after the commit, True if it was not there before."""
        return outside(self.commit.after, self.commit.before)

    @cached_property
    def removed(self) -> FileMask:
        """Returns one bit per file before the commit, True if it was not there after it."""
        return outside(self.commit.before, self.commit.after)

    @cached_property
    def taken(self) -> FileMask:
        """Returns one bit per file before the commit, True if the commit removed it or replaced its entry."""
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
        """Returns the files of a snapshot that the commit touched, or that are in a slice it touched."""
        commit = self.commit
        written = commit.adds.column("file_group").drop_null().to_pylist()
        slices = commit.before.groups_of(commit.removed).union(written)
        keys = snapshot.column("key")
        mine = pc.or_(
            pc.is_in(keys, pa.array(sorted(_keys(commit)), pa.string())),
            pc.is_in(snapshot.column("file_group"), pa.array(sorted(slices), pa.string())),
        )
        return frozenset(keys.filter(mine).to_pylist())

    @cached_property
    def taken_keys(self) -> frozenset[str]:
        """Returns files that may show a row with the key of a row that would come back.

        Either they hold newer rows, or they were deletes of older rows and are gone.
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
        """Returns one bit per file after the commit, True for a delete delta file taken out of a slice that remains."""
        after, now = self.commit.after, self.now
        stayed = now.column("file_group").filter(pa.array(~outside(now, after)))
        lives_on = as_mask(pc.is_in(after.column("file_group"), stayed.combine_chunks()))
        return outside(after, now) & _deletes(after) & lives_on

    def _revived(self) -> Iterator[tuple[Snapshot, FileMask]]:
        """Yields the files with the keys of rows that would come back: files the commit removed and deletes it added."""
        for snapshot, mask in (
            (self.commit.before, self.removed),
            (self.commit.after, self.added & _deletes(self.commit.after)),
        ):
            if mask.any():
                yield replace(snapshot, metadata=self.now.metadata), mask


def _deletes(snapshot: Snapshot) -> FileMask:
    return as_mask(pc.equal(snapshot.column("block"), "delete"))


def _overlap(revived: Sequence[tuple[Snapshot, FileMask]], files: Snapshot, name: str) -> FileMask:
    """Returns one bit per file, True if a value that the revived files may have lies between its bounds."""
    theirs = files.index().column((name,))
    mine = [(snapshot.index().column((name,)), pa.array(mask)) for snapshot, mask in revived]
    low = _extreme([stats.lo.filter(mask) for stats, mask in mine], "min")
    high = _extreme([stats.hi.filter(mask) for stats, mask in mine], "max")
    if low is None or high is None:
        return np.ones(files.num_files, np.bool_)
    return ~(as_mask(pc.less(theirs.hi, low)) | as_mask(pc.greater(theirs.lo, high)))


def _extreme(columns: Sequence[pa.Array], which: str) -> pa.Scalar | None:
    """Returns the lowest or highest of all values; None if one of them is unknown."""
    values = pa.chunked_array(columns)
    return None if values.null_count else pc.min_max(values)[which]
