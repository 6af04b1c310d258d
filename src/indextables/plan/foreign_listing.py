"""Slices from the file listing of another system, which shows failed and rolled-back files too.

What each file is follows from its block headers and the timeline, read as that system's own reader
reads them: log files in order, a rollback block cancelling the blocks of its target that came before.
Where a listing leaves a doubt, a file counts as one with rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import StructType
from indextables.errors import ConfigError
from indextables.plan.column_sets import ColumnSets
from indextables.plan.slices import Block, Slices, State
from indextables.plan.timeline import Timeline

_BLOCKS: Final = {"data": Block.DATA, "delete": Block.DELETE, "rollback": Block.ROLLBACK}
_KINDS: Final = ("base", "log")


@dataclass(frozen=True, slots=True)
class LogBlock:
    """The header of one block of a log file."""

    kind: Literal["data", "delete", "rollback"]
    instant: str
    """The commit that wrote it."""
    target: str | None = None
    """Of a rollback block: the instant whose blocks before it are cancelled."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A base or log file as it is found in a listing."""

    path: str
    group: str
    """The file group it belongs to."""
    instant: str
    """The instant in its name: a base file's own; of a log file that of its slice's base in tables before
    version 8 of Hudi, and that of the commit that wrote it from then on."""
    kind: Literal["base", "log"] = "base"
    version: int = 0
    """The place of a log file among those of its slice."""
    blocks: Sequence[LogBlock] | None = None
    """The headers of a log file; None if they were not read: it may then hold any row."""
    stats: SplitStats | None = None
    """None if the index does not know the file."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    columns: Sequence[str] | None = None
    """The columns a partial update sets; None: whole rows."""


def slices_from_listing(
    files: Iterable[ListedFile], timeline: Timeline, *, record_key: Sequence[str] = ()
) -> Slices:
    """Returns the slices of a listing, ready for `prune_slices`; arrays are in the order of the files.

    Of each file group the slice that a reader sees now is judged: the newest committed base file, and
    the log files that belong to it or to a base that is still to come. A log file that began before that
    base lies over it all the same if it was completed later, or if nobody knows when it was completed.
    """
    listed = list(files)
    _check(listed)
    bases = _Bases.of(listed, timeline)
    undone = _Undone.of(listed, timeline)
    found = [_classify(file, timeline, bases, undone) for file in listed]
    order = sorted(range(len(listed)), key=lambda i: _place(listed[i]))
    seq = np.empty(len(listed), np.int64)
    seq[order] = np.arange(len(listed))
    return Slices.of(
        pa.array([file.group for file in listed], pa.string()),
        np.array([block for block, _ in found], np.int8),
        np.array([state for _, state in found], np.int8),
        seq,
        key=tuple(record_key),
        sets=ColumnSets.of((file.columns for file in listed), record_key),
    )


def index_of_listing(
    files: Iterable[ListedFile], schema: StructType, partition_columns: Sequence[str] = ()
) -> ColumnStatsIndex:
    """Returns the statistics of the same files, in the same order.

    Of a file without any, nothing is known.
    """
    listed = list(files)
    lacking = [
        (file, name)
        for file in listed
        for name in partition_columns
        if name not in file.partition_values
    ]
    if lacking:
        file, name = lacking[0]
        raise ConfigError(
            f"the file {file.path!r} has no value of the partition column {name!r}",
            hint="give every file its partition_values; None is NULL",
        )
    source = source_of(
        [file.stats or SplitStats() for file in listed],
        schema,
        partition_columns=partition_columns,
        partition_values=[file.partition_values for file in listed],
    )
    return ColumnStatsIndex(source)


def _place(file: ListedFile) -> tuple[bool, str, int, str]:
    """Returns where a file stands in the order in which a reader of its group goes: base files, then logs."""
    return (file.kind == "log", file.instant, file.version, file.path)


@dataclass(frozen=True, slots=True)
class _Bases:
    """The base files of each group: which files are of the past because of them."""

    newest: Mapping[str, str]
    """By group, the instant of the newest committed one."""
    all: frozenset[tuple[str, str]]
    """Group and instant of every one."""

    @classmethod
    def of(cls, files: Iterable[ListedFile], timeline: Timeline) -> _Bases:
        newest: dict[str, str] = {}
        bases = [file for file in files if file.kind == "base"]
        for file in bases:
            if timeline.state_of(file.instant) is State.COMMITTED:
                newest[file.group] = max(file.instant, newest.get(file.group, ""))
        return cls(newest, frozenset((file.group, file.instant) for file in bases))

    def replace(self, file: ListedFile, timeline: Timeline) -> bool:
        """Returns whether a newer base has what the file holds; False where that is not sure."""
        newest = self.newest.get(file.group, "")
        if (file.group, file.instant) in self.all:
            return file.instant < newest  # a base, or a log file that is named by its base
        # A compaction folds what was completed when it was asked for, and not what had only begun.
        completed = timeline.completed_at.get(file.instant)
        return completed is not None and completed < newest


@dataclass(frozen=True, slots=True)
class _Undone:
    """How far rollback blocks reach back: only what was written before one is cancelled by it."""

    before: Mapping[tuple[str, str], tuple[str, int]]
    """By group and target, the last log file (instant, version) that cancels it."""
    inside: Mapping[tuple[str, str], int]
    """By path and target, the last block in that very file that cancels it."""

    @classmethod
    def of(cls, files: Iterable[ListedFile], timeline: Timeline) -> _Undone:
        before: dict[tuple[str, str], tuple[str, int]] = {}
        inside: dict[tuple[str, str], int] = {}
        for file in files:
            for position, block in enumerate(file.blocks or ()):
                # A rollback that failed itself is no proof that anything was undone.
                if block.target is None or timeline.state_of(block.instant) is not State.COMMITTED:
                    continue
                here, key = (file.instant, file.version), (file.group, block.target)
                before[key] = max(here, before.get(key, here))
                inside[file.path, block.target] = position
        return cls(before, inside)

    def covers(self, file: ListedFile, position: int, block: LogBlock) -> bool:
        last = self.before.get((file.group, block.instant))
        if last is not None and (file.instant, file.version) < last:
            return True
        return position < self.inside.get((file.path, block.instant), -1)


def _classify(
    file: ListedFile, timeline: Timeline, bases: _Bases, undone: _Undone
) -> tuple[Block, State]:
    """Returns what a file is as a whole: its blocks with rows count first, then those that hide rows."""
    blocks = _blocks(file, timeline, undone)
    if bases.replace(file, timeline):
        return blocks[0][0], State.REPLACED
    for wanted in (Block.DATA, Block.DELETE):
        if (wanted, State.COMMITTED) in blocks:
            return wanted, State.COMMITTED
    return blocks[0]


def _blocks(file: ListedFile, timeline: Timeline, undone: _Undone) -> list[tuple[Block, State]]:
    if file.kind == "base":
        return [(Block.BASE, timeline.state_of(file.instant))]
    if file.blocks is None:
        return [(Block.DATA, State.COMMITTED)]
    found = []
    for position, block in enumerate(file.blocks):
        state = timeline.state_of(block.instant)
        if block.kind != "rollback" and undone.covers(file, position, block):
            state = State.ROLLED_BACK
        found.append((_BLOCKS[block.kind], state))
    # A log file without a block is what a writer leaves that failed before its first.
    return found or [(Block.DATA, State.FAILED)]


def _check(files: Sequence[ListedFile]) -> None:
    paths: set[str] = set()
    partitions: dict[str, Mapping[str, str | None]] = {}
    for file in files:
        _check_file(file)
        if file.path in paths:
            raise ConfigError(f"the file {file.path!r} is listed twice", hint="list every file once")
        paths.add(file.path)
        known = partitions.setdefault(file.group, file.partition_values)
        if known != file.partition_values:
            raise ConfigError(
                f"the file group {file.group!r} is in two partitions: {dict(known)} and "
                f"{dict(file.partition_values)}",
                hint="a group is in one; put the partition into the group's name if names repeat",
            )


def _check_file(file: ListedFile) -> None:
    if file.kind not in _KINDS:
        raise ConfigError(
            f"the file {file.path!r} is of the kind {file.kind!r}", hint="a file is 'base' or 'log'"
        )
    if not isinstance(file.instant, str):
        raise ConfigError(
            f"the instant of the file {file.path!r} is not a text: {file.instant!r}",
            hint="instants are texts, as the timeline spells them",
        )
    if file.kind == "base" and file.blocks:
        raise ConfigError(
            f"the base file {file.path!r} has block headers", hint="only log files have blocks"
        )
    for block in file.blocks or ():
        if block.kind not in _BLOCKS:
            raise ConfigError(
                f"a block of {file.path!r} is of the kind {block.kind!r}",
                hint=f"the kinds are {', '.join(_BLOCKS)}; leave out blocks that readers ignore",
            )
        if (block.kind == "rollback") != (block.target is not None):
            raise ConfigError(
                f"a {block.kind} block of {file.path!r} has the target {block.target!r}",
                hint="a rollback block names the instant it cancels, and no other block does",
            )
