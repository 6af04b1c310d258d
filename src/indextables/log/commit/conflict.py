"""Two writers, one version: what the loser must do. A pure function of its plan and the winners.

The columns of this table are what the winner *did*, read from its actions; one commit may do several.

| me            | added rows          | removed my file | log in my group | replaced my file's entry | changed metadata |
|---------------|---------------------|-----------------|-----------------|--------------------------|------------------|
| append        | ok                  | ok              | ok              | ok                       | ok if it fits    |
| rewrite (P)   | re-plan if may be P | re-plan         | re-plan         | ok                       | re-plan          |
| upsert (K)    | re-plan if may be K | group gone: re-plan | ok (`seq`)  | ok                       | re-plan          |
| compact       | ok                  | skip group      | ok (`seq`)      | skip group               | ok               |
| optimize      | ok                  | skip group      | skip group      | skip group               | ok               |
| analyze       | ok                  | skip path       | ok              | skip path                | skip columns     |
| change schema | ok                  | ok              | ok              | ok                       | error            |
| restore       | re-plan             | re-plan         | re-plan         | re-plan                  | re-plan          |

A winner may also have brought old rows back (`Winner.revived`): it took a log file out of a slice, or put
in a file older than itself. Rows that were judged hidden are visible then, so a rewrite or an upsert is
planned again, and a compaction leaves such a slice alone: what it folded is not all there is.

"My group" is one that loses a file to me or gets a log from me. An upsert relies on where its keys are; of
those it inserts, on their being nowhere; and if it sets some columns only, on the rows it sets them of. One whose
rows were computed from the table itself (`Upsert.derived`) relies on all rows that have its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.evaluate import may_match
from indextables.core.types import FieldPath, StructType, can_widen, leaves
from indextables.errors import (
    CommitConflictError,
    IndexTablesError,
    LogReplacedError,
    ProtocolError,
    SchemaMismatchError,
)
from indextables.log.commit.intent import (
    Analyze,
    Append,
    ChangeSchema,
    CommitPlan,
    Compact,
    Group,
    Maintain,
    Optimize,
    Restore,
    Rewrite,
    Upsert,
)
from indextables.log.open.replay import facts_of, read_body, replay
from indextables.log.state.parse import parse_adds, parse_removes
from indextables.log.state.segments import TOMBSTONES, Segment, Shape
from indextables.log.state.snapshot import Files, Snapshot
from indextables.log.wire.actions import Add, CommitInfo, Metadata, check_writable
from indextables.log.wire.files import LogBody

# A commit that came first, seen by the writer that has to live with it.


@dataclass(frozen=True)
class Winner:
    """What one commit changed, by its actions: the name of its operation may be another writer's."""

    version: int
    info: CommitInfo
    before: Snapshot
    """The table it was committed to."""
    after: Snapshot
    adds: Any
    """Its adds as rows of a segment."""
    shape: Shape
    removed: frozenset[str]
    dropped: frozenset[str]
    """Of these, the files whose rows went with them: not merely into another file."""

    @property
    def changes_metadata(self) -> bool:
        """Returns True if schema, partitioning or properties are others now."""
        return self.after.metadata != self.before.metadata

    @property
    def changes_protocol(self) -> bool:
        """Returns True if the table asks more, or less, of its readers and writers now."""
        return self.after.protocol != self.before.protocol

    @cached_property
    def reanalyzed(self) -> frozenset[str]:
        """Returns live files whose entry it replaced without touching their rows."""
        keys = self.adds.column("key")
        seen = np.zeros(len(keys), np.bool_)
        for segment in self.before.state.segments:
            seen |= np.asarray(pc.is_in(keys, segment.column("key")))
        return frozenset(keys.filter(pa.array(seen)).to_pylist()) - self.removed

    @cached_property
    def new_rows(self) -> Snapshot:
        """Returns a snapshot of just the files with rows that were not in the table before, for the pruner."""
        rows = self.adds.filter(pc.and_(self.adds.column("data_change"), pc.invert(self._is_delete())))
        rows = rows.filter(
            pc.invert(pc.is_in(rows.column("key"), pa.array(self.reanalyzed, pa.string())))
        )
        files = Files((Segment.alive(rows, self.shape),), TOMBSTONES.empty_table())
        return replace(self.after, state=files)

    @cached_property
    def log_groups(self) -> frozenset[str]:
        """Returns the slices that received a delta file."""
        logs = self.adds.filter(pc.equal(self.adds.column("kind"), "log"))
        return frozenset(logs.column("file_group").drop_null().to_pylist())

    def in_groups(self, groups: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Returns which of `new_rows` are in these slices."""
        found = pc.is_in(self.new_rows.column("file_group"), pa.array(sorted(groups), pa.string()))
        return np.asarray(found)

    @cached_property
    def shrunk_groups(self) -> frozenset[str]:
        """Returns the slices that lost rows: a file with its rows, or rows named by a delete delta."""
        deletes = self.adds.filter(self._is_delete()).column("file_group").drop_null().to_pylist()
        lost = self.before.groups_of(self.dropped) if self.dropped else frozenset()
        return lost | frozenset(deletes)

    @cached_property
    def vanished_groups(self) -> frozenset[str]:
        """Returns the slices that had a file before the winner and have none after it."""
        return self.before.groups_of(self.removed) - self.after.groups

    @cached_property
    def revived(self) -> frozenset[str]:
        """Returns the slices in which rows may be visible again that newer delta files had hidden.

        A log file was taken out of the slice, or rows older than this commit were put into it.
        """
        older = pc.less(self.adds.column("seq"), self.before.next_seq)
        old = self.adds.filter(pc.and_(older, self.adds.column("data_change")))
        logs = self.before.column("key").filter(pc.equal(self.before.column("kind"), "log"))
        dropped = self.dropped.intersection(logs.to_pylist()) if self.dropped else frozenset()
        groups = self.before.groups_of(dropped) if dropped else frozenset()
        return (groups & self.after.groups) | frozenset(
            old.column("file_group").drop_null().to_pylist()
        )

    def _is_delete(self) -> Any:
        return pc.fill_null(pc.equal(self.adds.column("block"), "delete"), fill_value=False)


def winner(before: Snapshot, body: LogBody, table_uri: str) -> Winner:
    """Returns what one commit changed, for a writer that lost against it."""
    after = replay(before, [body], table_uri)
    facts, lines = read_body(facts_of(before), body, 1)
    shape = Shape.of(after.metadata)
    removes = parse_removes([lines], table_uri).table
    moved = pc.fill_null(pc.invert(removes.column("data_change")), fill_value=False)
    return Winner(
        version=body.file.version,
        info=facts.info,
        before=before,
        after=after,
        adds=parse_adds([lines], shape, table_uri).table,
        shape=shape,
        removed=frozenset(removes.column("key").to_pylist()),
        dropped=frozenset(removes.column("key").filter(pc.invert(moved)).to_pylist()),
    )


@dataclass(frozen=True, slots=True)
class Rebase:
    """Commit the same actions on top of the winner."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Commit on top of the winner, without these groups and without statistics of these columns."""

    groups: frozenset[str] = frozenset()
    columns: frozenset[FieldPath] = frozenset()


@dataclass(frozen=True, slots=True)
class Replan:
    """What the plan relied on has changed: make a new one from the winner's snapshot."""

    reason: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """No plan of this kind can follow the winner."""

    error: IndexTablesError


Outcome: TypeAlias = Rebase | Skip | Replan | Conflict


def check(plan: CommitPlan, winners: Sequence[Winner]) -> Outcome:
    """Returns what to do after losing to these commits: the strictest of what each demands."""
    outcome: Outcome = Rebase()
    for winner in winners:
        outcome = _stricter(outcome, _check(plan, winner))
    return outcome


def _stricter(left: Outcome, right: Outcome) -> Outcome:
    match left, right:
        case (Conflict(), _) | (Replan(), Replan() | Skip() | Rebase()) | (Skip(), Rebase()):
            return left
        case Skip(groups, columns), Skip(more_groups, more_columns):
            return Skip(groups | more_groups, columns | more_columns)
        case _:
            return right


def _check(plan: CommitPlan, winner: Winner) -> Outcome:
    if winner.changes_protocol:
        return _protocol(winner)
    match plan.verb:
        case Append():
            return _append(plan, winner)
        case Rewrite():
            return _rewrite(plan, plan.verb, winner)
        case Upsert():
            return _upsert(plan.verb, winner)
        case Compact():
            return _skip(plan.groups, winner.removed | winner.reanalyzed, winner.revived)
        case Optimize():
            return _skip(plan.groups, winner.removed | winner.reanalyzed, winner.log_groups)
        case Analyze():
            return _analyze(plan, winner)
        case ChangeSchema():
            return _change_schema(winner)
        case Maintain():
            return Rebase()
        case Restore():
            return _restore(winner)
        case _:
            assert_never(plan.verb)


def _protocol(winner: Winner) -> Outcome:
    try:
        check_writable(winner.after.protocol)
    except (LogReplacedError, ProtocolError) as error:
        return Conflict(error)
    return Replan(f"version {winner.version} changed the protocol")


def _append(plan: CommitPlan, winner: Winner) -> Outcome:
    """Returns rows already written still fit if every column they have is there, with a type as wide."""
    if not winner.changes_metadata:
        return Rebase()
    if any(isinstance(action, Metadata) for action in plan.actions):
        return Replan(f"version {winner.version} changed the schema, as this write does")
    ids = {action.schema_id for action in plan.actions if isinstance(action, Add)}
    for schema_id in ids:
        written = winner.before.metadata.schema_of(schema_id) or winner.before.schema
        if reason := _does_not_fit(written, winner.before.metadata, winner.after.metadata):
            error = SchemaMismatchError(
                f"version {winner.version} changed the table while rows were written: {reason}",
                hint="read the table's schema again and repeat the write",
                version=winner.version,
            )
            return Conflict(error)
    return Rebase()


def _does_not_fit(written: StructType, before: Metadata, after: Metadata) -> str | None:
    if before.partition_columns != after.partition_columns:
        return f"it is now partitioned by {list(after.partition_columns)}"
    now = {leaf.path: leaf for leaf in leaves(after.schema)}
    then = {leaf.path: leaf for leaf in leaves(written)}
    for path, leaf in then.items():
        if path not in now:
            return f"column {'.'.join(path)} is gone"
        if leaf.type != now[path].type and not can_widen(leaf.type, now[path].type):
            return f"column {'.'.join(path)} has another type"
        if leaf.nullable and not now[path].nullable:
            return f"column {'.'.join(path)} must not be NULL any more"
    required = [path for path, leaf in now.items() if path not in then and not leaf.nullable]
    return f"column {'.'.join(required[0])} is new and must not be NULL" if required else None


def _rewrite(plan: CommitPlan, verb: Rewrite, winner: Winner) -> Outcome:
    if winner.changes_metadata:
        return Replan(f"version {winner.version} changed the schema")
    if lost := plan.removed() & winner.removed:
        return Replan(f"version {winner.version} removed {min(lost)!r} too")
    logged = plan.logged_groups()
    if gone := logged & (winner.vanished_groups | winner.shrunk_groups):
        return Replan(f"version {winner.version} removed rows of the file group {min(gone)!r}")
    if (winner.before.groups_of(plan.removed()) | logged) & winner.log_groups:
        # A file of mine would be newer than this log: what replaces a file would bring its rows back,
        # and a delete would hit a row that no longer satisfies the condition.
        return Replan(f"version {winner.version} changed rows of a slice that is rewritten here")
    if winner.revived:
        return _replan_revived(winner)
    if _may_hold(verb.where, winner).any():
        return Replan(f"version {winner.version} added rows that may be affected")
    if verb.inserted is not None and _may_hold(verb.inserted, winner).any():
        return Replan(f"version {winner.version} added rows that may have the same keys")
    return Rebase()


def _upsert(verb: Upsert, winner: Winner) -> Outcome:
    if winner.changes_metadata:
        return Replan(f"version {winner.version} changed the schema")
    if gone := verb.groups & winner.vanished_groups:
        return Replan(f"version {winner.version} removed the file group {min(gone)!r}")
    if winner.revived:
        return _replan_revived(winner)
    # In a group of mine `seq` decides between us: both know the key to be there, and nowhere else.
    # Not for a key I insert: it may have been there when the winner began, and gone when I did.
    # Nor if my rows were computed from the table's: what the winner did to one of them would be undone.
    held = _may_hold(verb.keys, winner)
    if not verb.derived:
        held &= ~winner.in_groups(verb.groups)
    if verb.inserted is not None:
        held |= _may_hold(verb.inserted, winner)
    if held.any():
        return Replan(f"version {winner.version} added rows that may have the same keys")
    if (verb.partial or verb.derived) and (verb.groups & winner.shrunk_groups):
        # what is set here, or is not, comes from the row as it was, and the row may be gone
        return Replan(f"version {winner.version} removed rows whose columns are set here")
    return Rebase()


def _replan_revived(winner: Winner) -> Outcome:
    return Replan(f"version {winner.version} brought rows back in {min(winner.revived)!r}")


def _analyze(plan: CommitPlan, winner: Winner) -> Outcome:
    skip = _skip(plan.groups, winner.removed | winner.reanalyzed, frozenset())
    if not winner.changes_metadata:
        return skip
    changed = frozenset(_changed_columns(winner.before.schema, winner.after.schema))
    return _stricter(skip, Skip(columns=changed))


def _change_schema(winner: Winner) -> Outcome:
    if not winner.changes_metadata:
        return Rebase()
    return Conflict(
        CommitConflictError(
            f"version {winner.version} changed the table's metadata at the same time",
            hint="look at the table as it is now and decide again",
            version=winner.version,
        )
    )


def _restore(winner: Winner) -> Outcome:
    """Returns the files it found are exchanged as a whole, so it must have found all of them."""
    before, after = winner.before, winner.after
    same_files = not winner.removed and winner.adds.num_rows == 0
    if same_files and not winner.changes_metadata and before.min_read_version == after.min_read_version:
        return Rebase()
    return Replan(f"version {winner.version} changed the table")


def _skip(groups: Iterable[Group], keys: frozenset[str], file_groups: frozenset[str]) -> Outcome:
    touched = [g.name for g in groups if g.inputs & keys or g.file_groups & file_groups]
    return Skip(frozenset(touched)) if touched else Rebase()


def _may_hold(where: Any | None, winner: Winner) -> Any:
    """Returns one bit per file of `winner.new_rows`: False only if none of its rows satisfies the condition."""
    rows = winner.new_rows
    return np.ones(rows.num_files, np.bool_) if where is None else may_match(where, rows.index())


def _changed_columns(before: StructType, after: StructType) -> Iterable[FieldPath]:
    now = {leaf.path: leaf.type for leaf in leaves(after)}
    return (leaf.path for leaf in leaves(before) if now.get(leaf.path) != leaf.type)
