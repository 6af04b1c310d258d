"""Slices from the file listing of another system, which also shows failed and rolled-back files.

What a file is follows from its block headers and the timeline, by the rules of the other system's reader:
log files are read in order, and a rollback block cancels the earlier blocks of its target. In doubt, a file
counts as one with rows. "Log file" is the other system's word for a delta file.
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
    """The commit that wrote the block."""
    target: str | None = None
    """For a rollback block, the instant whose earlier blocks are cancelled."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A base file or log file as a listing shows it."""

    path: str
    group: str
    """The file group to which it belongs."""
    instant: str
    """The instant in its name: the commit that wrote it, but for a log file of a table before version 8 of
    Hudi the instant of its base file."""
    kind: Literal["base", "log"] = "base"
    version: int = 0
    """The number of a log file within its slice."""
    blocks: Sequence[LogBlock] | None = None
    """The block headers of a log file; None if they were not read, so that it may have any row."""
    stats: SplitStats | None = None
    """The file's statistics; None if the index does not know the file."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    columns: Sequence[str] | None = None
    """The columns that a partial update sets; None if it has whole rows."""


def slices_from_listing(
    files: Iterable[ListedFile], timeline: Timeline, *, record_key: Sequence[str] = ()
) -> Slices:
    """Returns the slices of a listing, for `prune_slices`.

    A file group is judged by the slice that a reader sees now: the newest committed base file, and the log
    files for it or for a base file that is still to come. A log file that was begun before that base file
    belongs to the slice, too, if it was completed later or if it is not known when it was completed.

    Args:
        files: Every file of the listing, in any order.
        timeline: The commits of the table.
        record_key: The columns that identify a row.

    Returns:
        The slices, with arrays in the order of `files`.

    Raises:
        ConfigError: The listing contradicts itself.
    """
    listed = list(files)
    _check(listed)
    bases = _Bases.of(listed, timeline)
    undone = _Undone.of(listed, timeline)
    found = [_classify(file, timeline, bases, undone) for file in listed]
    order = sorted(range(len(listed)), key=lambda i: _rank(listed[i]))
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
    """Returns the statistics of the files of a listing; a file without statistics may have any row.

    Args:
        files: The files in the order in which they were given to `slices_from_listing`.
        schema: The schema of the table.
        partition_columns: The columns whose value is the same in all rows of a file.

    Returns:
        An index for `prune_slices`.

    Raises:
        ConfigError: A file has no value of a partition column.
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
            hint="give every file its partition_values, in which None is NULL",
        )
    source = source_of(
        [file.stats or SplitStats() for file in listed],
        schema,
        partition_columns=partition_columns,
        partition_values=[file.partition_values for file in listed],
    )
    return ColumnStatsIndex(source)


def _rank(file: ListedFile) -> tuple[bool, str, int, str]:
    """Returns what the files of a group are sorted by when they are read: base files first, then log files."""
    return (file.kind == "log", file.instant, file.version, file.path)


@dataclass(frozen=True, slots=True)
class _Bases:
    """The base files of each file group, which replace older files."""

    newest: Mapping[str, str]
    """By file group, the instant of the newest committed base file."""
    all: frozenset[tuple[str, str]]
    """File group and instant of every base file."""

    @classmethod
    def of(cls, files: Iterable[ListedFile], timeline: Timeline) -> _Bases:
        newest: dict[str, str] = {}
        bases = [file for file in files if file.kind == "base"]
        for file in bases:
            if timeline.state_of(file.instant) is State.COMMITTED:
                newest[file.group] = max(file.instant, newest.get(file.group, ""))
        return cls(newest, frozenset((file.group, file.instant) for file in bases))

    def replace(self, file: ListedFile, timeline: Timeline) -> bool:
        """Returns True only if a newer base file surely has the rows of the file."""
        newest = self.newest.get(file.group, "")
        if (file.group, file.instant) in self.all:
            return file.instant < newest  # a base file, or a log file with the instant of its base file
        # A compaction includes what was completed when it was requested, and not what was only begun.
        completed = timeline.completed_at.get(file.instant)
        return completed is not None and completed < newest


@dataclass(frozen=True, slots=True)
class _Undone:
    """What rollback blocks cancel: blocks of their target that were written before them."""

    before: Mapping[tuple[str, str], tuple[str, int]]
    """By file group and target, the last log file (instant, version) that cancels the target."""
    inside: Mapping[tuple[str, str], int]
    """By path and target, the last block in the same file that cancels the target."""

    @classmethod
    def of(cls, files: Iterable[ListedFile], timeline: Timeline) -> _Undone:
        before: dict[tuple[str, str], tuple[str, int]] = {}
        inside: dict[tuple[str, str], int] = {}
        for file in files:
            for position, block in enumerate(file.blocks or ()):
                # A rollback that failed does not prove that anything was undone.
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
    """Returns what a file is as a whole, by its blocks with rows or, without any, by those that hide rows."""
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
    # A log file without blocks is from a writer that failed before its first block.
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
                hint="a file group is in one partition; add the partition to its name if names are repeated",
            )


def _check_file(file: ListedFile) -> None:
    if file.kind not in _KINDS:
        raise ConfigError(
            f"the file {file.path!r} is of the kind {file.kind!r}", hint="a file is 'base' or 'log'"
        )
    if not isinstance(file.instant, str):
        raise ConfigError(
            f"the instant of the file {file.path!r} is not a text: {file.instant!r}",
            hint="instants are texts as in the timeline",
        )
    if file.kind == "base" and file.blocks:
        raise ConfigError(
            f"the base file {file.path!r} has block headers", hint="only log files have blocks"
        )
    for block in file.blocks or ():
        if block.kind not in _BLOCKS:
            raise ConfigError(
                f"a block of {file.path!r} is of the kind {block.kind!r}",
                hint=f"the kinds are {', '.join(_BLOCKS)}; leave out other blocks, which readers ignore",
            )
        if (block.kind == "rollback") != (block.target is not None):
            raise ConfigError(
                f"a {block.kind} block of {file.path!r} has the target {block.target!r}",
                hint="a rollback block names the instant it cancels, and no other block does",
            )
