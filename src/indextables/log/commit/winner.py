"""A commit that came first, seen by the writer that has to live with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.open.replay import facts_of, read_body, replay
from indextables.log.state.parse import parse_adds, parse_removes
from indextables.log.state.reconcile import Files
from indextables.log.state.segments import TOMBSTONES, Segment, Shape
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.files import LogBody


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
        """True if schema, partitioning or properties are others now."""
        return self.after.metadata != self.before.metadata

    @property
    def changes_protocol(self) -> bool:
        """True if the table asks more, or less, of its readers and writers now."""
        return self.after.protocol != self.before.protocol

    @cached_property
    def reanalyzed(self) -> frozenset[str]:
        """Live files whose entry it replaced without touching their rows."""
        keys = self.adds.column("key")
        seen = np.zeros(len(keys), np.bool_)
        for segment in self.before.state.segments:
            seen |= np.asarray(pc.is_in(keys, segment.column("key")))
        return frozenset(keys.filter(pa.array(seen)).to_pylist()) - self.removed

    @cached_property
    def new_rows(self) -> Snapshot:
        """A snapshot of just the files with rows that were not in the table before, for the pruner."""
        rows = self.adds.filter(pc.and_(self.adds.column("data_change"), pc.invert(self._is_delete())))
        rows = rows.filter(
            pc.invert(pc.is_in(rows.column("key"), pa.array(self.reanalyzed, pa.string())))
        )
        files = Files((Segment.alive(rows, self.shape),), TOMBSTONES.empty_table())
        return replace(self.after, state=files)

    @cached_property
    def log_groups(self) -> frozenset[str]:
        """File groups that received a log file."""
        logs = self.adds.filter(pc.equal(self.adds.column("kind"), "log"))
        return frozenset(logs.column("file_group").drop_null().to_pylist())

    def in_groups(self, groups: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Of `new_rows`, those in these file groups."""
        found = pc.is_in(self.new_rows.column("file_group"), pa.array(sorted(groups), pa.string()))
        return np.asarray(found)

    @cached_property
    def shrunk_groups(self) -> frozenset[str]:
        """File groups that lost rows: a file with its rows, or rows named by a delete log."""
        deletes = self.adds.filter(self._is_delete()).column("file_group").drop_null().to_pylist()
        lost = self.before.groups_of(self.dropped) if self.dropped else frozenset()
        return lost | frozenset(deletes)

    @cached_property
    def vanished_groups(self) -> frozenset[str]:
        """File groups that had a file before it and have none after it."""
        return self.before.groups_of(self.removed) - self.after.groups

    @cached_property
    def revived(self) -> frozenset[str]:
        """File groups in which rows may be visible again that newer log files had hidden.

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
    """What one commit changed, for a writer that lost against it."""
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
