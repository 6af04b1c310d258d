"""File slices: a base file and the log files over it, kept or skipped by the rows they can show.

What a file is says its action, or its block header and the state of its commit, never its absence from
an index. Only committed base files and data logs hold rows; a delete log adds none, and neither do
rollback blocks and files of failed or undone commits: none of them keeps a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, assert_never
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import Pruned, may_match, prune
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.prune.source import FileMask, as_array, as_mask
from indextables.core.types import FieldPath
from indextables.errors import ProtocolError
from indextables.log.state.snapshot import Snapshot
from indextables.plan.column_sets import ColumnSets
from indextables.plan.merge_rule import MergeMode, MergeRule
from indextables.plan.report import SliceCounts
from indextables.plan.slice_stats import OnlyColumns, SliceIndex

Numbers = npt.NDArray[np.int64]


class Block(IntEnum):
    """What a file consists of."""

    BASE = 0
    DATA = 1
    """A log file with rows."""
    DELETE = 2
    """A log file with keys of rows that are gone."""
    ROLLBACK = 3
    """A log file that says which commit is undone."""


class State(IntEnum):
    """What became of the commit that wrote a file."""

    COMMITTED = 0
    FAILED = 1
    """Or still going on: not committed in any case."""
    ROLLED_BACK = 2
    REPLACED = 3
    """Committed, but of a slice whose rows are in a newer base file by now."""


_NEVER: Final = (False, False, False, False)
_COMMITTED: Final = (True, False, False, False)
_HOLDS_ROWS: Final = np.array([_COMMITTED, _COMMITTED, _NEVER, _NEVER])
"""By block and state: a base file, a data log, a delete log, a rollback block."""
_HIDES_ROWS: Final = np.array([_NEVER, _COMMITTED, _COMMITTED, _NEVER])


@dataclass(frozen=True, eq=False)
class Slices:
    """The slices of a table as arrays over its files."""

    codes: Numbers
    """For each file, the number of its slice."""
    names: Any
    """For each slice, its file group as an Arrow text; null for a file without a group."""
    block: npt.NDArray[np.int8]
    """For each file, a `Block`."""
    state: npt.NDArray[np.int8]
    """For each file, a `State`."""
    seq: Numbers
    """For each file, its place in the order of commits; a log hides rows of files with a lower one."""
    key: tuple[str, ...] = ()
    """The columns that identify a row."""
    sets: ColumnSets | None = None
    """Which columns each file sets; None: every file has whole rows."""

    @classmethod
    def of(
        cls,
        file_group: Any,
        block: npt.NDArray[np.int8],
        state: npt.NDArray[np.int8],
        seq: Numbers,
        *,
        key: tuple[str, ...] = (),
        sets: ColumnSets | None = None,
    ) -> Slices:
        """Returns slices from columns over the same files.

        A file without a group is a slice of its own.
        """
        encoded = as_array(file_group).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        alone = np.flatnonzero(codes < 0)
        named = len(encoded.dictionary)
        codes[alone] = named + np.arange(len(alone))
        names = pa.concat_arrays([encoded.dictionary, pa.nulls(len(alone), encoded.dictionary.type)])
        return cls(codes, names, block, state, seq, key, sets)

    @property
    def count(self) -> int:
        """Returns the number of slices."""
        return len(self.names)

    @cached_property
    def holds_rows(self) -> FileMask:
        """Returns where a file's rows can be rows of the table."""
        rows: FileMask = _HOLDS_ROWS[self.block, self.state]
        return rows

    @cached_property
    def hides_rows(self) -> FileMask:
        """Returns where a file's keys can hide, or change, rows of older files."""
        logs: FileMask = _HIDES_ROWS[self.block, self.state]
        return logs

    @cached_property
    def first_files(self) -> Numbers:
        """Returns for each file the index of the first file of its slice."""
        first = np.full(self.count, len(self.codes))
        np.minimum.at(first, self.codes, np.arange(len(self.codes)))
        first_files: Numbers = first[self.codes]
        return first_files

    @property
    def is_log(self) -> FileMask:
        """Returns where a file is not a base file."""
        logs: FileMask = self.block != Block.BASE
        return logs

    def having(self, files: FileMask) -> FileMask:
        """Returns one bit per slice: it has one of these files."""
        found = np.zeros(self.count, np.bool_)
        found[self.codes[files]] = True
        return found

    def whole(self, rows: FileMask) -> FileMask:
        """Returns all files with rows of the slices that have one of these."""
        return self.holds_rows & self.having(rows)[self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class PrunedSlices:
    """What is left of the slices for one condition."""

    kept: FileMask
    """One bit per slice."""
    kept_before: FileMask
    """One bit per slice: what is kept by the rule that re-adds every file the index does not know."""
    rows: FileMask
    """One bit per file: its rows are read."""
    logs: FileMask
    """One bit per file: its keys are needed, because they may hide rows that are read."""
    bare: FileMask
    """One bit per file: its rows are read, and no log can change any of them that is wanted."""
    inside: FileMask
    """One bit per file: partition values do not exclude it."""
    columns: tuple[FieldPath, ...]
    """The columns whose statistics were asked."""

    @property
    def files(self) -> FileMask:
        """Returns one bit per file: it is opened."""
        return self.rows | self.logs

    @property
    def counts(self) -> SliceCounts:
        """Returns how much the rule skips, and how much was skipped before it."""
        return SliceCounts(len(self.kept), int(self.kept.sum()), int(self.kept_before.sum()))


def prune_slices(
    slices: Slices,
    index: ColumnStatsIndex,
    predicate: Predicate | None,
    merge_mode: MergeMode,
    *,
    within: FileMask | None = None,
) -> PrunedSlices:
    """Returns the slices that may show a row for which the bound predicate is TRUE, and the files to read.

    A slice of which no row-bearing file can match is skipped. `within` are the files whose rows are
    wanted at all; logs come along from outside of it.
    """
    every = np.ones(index.num_rows, np.bool_)
    found = Pruned(every, every, ()) if predicate is None else prune(predicate, index)
    inside = found.kept_by_partition if within is None else found.kept_by_partition & within
    # A log is needed if it may hold the key of a row that satisfies the condition, whatever the other
    # columns of the log's own row say.
    keyed = every if predicate is None else may_match(predicate, OnlyColumns(index, slices.key))
    rows = slices.holds_rows & inside
    match merge_mode:
        case MergeMode.RECORD:
            rows = rows & found.kept
        case MergeMode.COLUMNS:
            rows = _combined(slices, index, predicate, slices.whole(rows) & keyed, found.kept)
        case MergeMode.CUSTOM:
            rows, keyed = slices.whole(rows & keyed), every
        case _:
            assert_never(merge_mode)
    logs = slices.hides_rows & keyed & (slices.seq > _oldest(slices, rows)[slices.codes])
    bare = rows & (slices.seq >= _newest(slices, logs)[slices.codes])
    if merge_mode is not MergeMode.RECORD:
        alone = np.bincount(slices.codes[rows], minlength=slices.count) == 1
        bare &= ~slices.is_log & alone[slices.codes]
    kept = slices.having(rows)
    unindexed = slices.is_log & ~slices.holds_rows & (slices.state != State.REPLACED)
    kept_before = kept | slices.having(unindexed & inside)
    return PrunedSlices(kept, kept_before, rows, logs, bare, inside, found.columns)


def _combined(
    slices: Slices,
    index: ColumnStatsIndex,
    predicate: Predicate | None,
    candidates: FileMask,
    matching: FileMask,
) -> FileMask:
    """Returns the files whose rows, put together column by column, may satisfy the predicate.

    One column may come from one file and the next from another, so a slice with logs is judged as a
    whole; a base without logs is judged by itself.
    """
    if predicate is None:
        return candidates
    merged = slices.having(candidates & slices.is_log)
    together = candidates & merged[slices.codes]
    kept = slices.having(candidates & ~together & matching)
    union = SliceIndex(index, slices.codes, together, slices.sets)
    kept[union.numbers] = may_match(predicate, union)
    return candidates & kept[slices.codes]


def _oldest(slices: Slices, rows: FileMask) -> Numbers:
    """For each slice, the lowest `seq` of these files; without any, above all."""
    oldest = np.full(slices.count, np.iinfo(np.int64).max)
    np.minimum.at(oldest, slices.codes[rows], slices.seq[rows])
    return oldest


def _newest(slices: Slices, logs: FileMask) -> Numbers:
    """For each slice, the highest `seq` of these files; without any, below all."""
    newest = np.full(slices.count, np.iinfo(np.int64).min)
    np.maximum.at(newest, slices.codes[logs], slices.seq[logs])
    return newest


# The slices of our own tables: every live file is committed, and its action says what it is.

_known: Final[WeakKeyDictionary[ColumnStatsIndex, Slices | None]] = WeakKeyDictionary()
"""What one plan of a snapshot found out the next one need not; gone with the snapshot's index."""


def slices_of(snapshot: Snapshot) -> Slices | None:
    """Returns the slices of a snapshot.

    None if it has no log file, so that every file stands for itself.
    """
    index = snapshot.index()
    if index not in _known:
        _known[index] = _slices(snapshot)
    return _known[index]


def _slices(snapshot: Snapshot) -> Slices | None:
    is_log = as_mask(pc.equal(snapshot.column("kind"), "log"))
    if not is_log.any():
        return None
    blocks = snapshot.column("block")
    _check_blocks(blocks, is_log)
    deletes = as_mask(pc.equal(blocks, "delete"))
    block = np.where(is_log, np.where(deletes, Block.DELETE, Block.DATA), Block.BASE).astype(np.int8)
    rule, sets = MergeRule.of(snapshot.properties), None
    if not rule.key:
        raise ProtocolError(
            "the table has log files whose rows must be merged with older ones, and no record key says how",
            hint="Table.check() lists these files; a writer that is not ours has added them",
        )
    if rule.mode is MergeMode.COLUMNS:
        sets = ColumnSets.from_tags(snapshot.column("extra"), block == Block.DATA, rule.key)
    return Slices.of(
        snapshot.column("file_group"),
        block,
        np.full(len(block), State.COMMITTED, np.int8),
        snapshot.column("seq").to_numpy(),
        key=rule.key,
        sets=sets,
    )


def _check_blocks(blocks: Any, is_log: FileMask) -> None:
    known = as_mask(pc.is_in(blocks, pa.array(["data", "delete"])))
    if (is_log & ~known).any():
        found = blocks.filter(pa.array(is_log & ~known))[0].as_py()
        raise ProtocolError(
            f"the table has log files of the kind {found!r}, which this version does not know",
            hint="upgrade indextables, or compact the table with the version that wrote it",
        )
