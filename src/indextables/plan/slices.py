"""Slices: a base file and the delta files over it, which are kept or skipped by the rows they can show.

Its action, or its block header and the state of its commit, says what a file is, and not whether it has
statistics. Only committed base files and data delta files have rows. Delete delta files, rollback blocks and
files of failed or undone commits have none, so they do not keep a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final, assert_never
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import Pruned, may_match, prune
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.stats.columns import FileMask, as_array, as_mask
from indextables.core.types import FieldPath
from indextables.deprecated import renamed
from indextables.errors import ProtocolError
from indextables.log.state.snapshot import Snapshot
from indextables.plan.column_sets import ColumnSets
from indextables.plan.merge_rule import MergeMode, MergeRule
from indextables.plan.report import SliceCounts
from indextables.plan.slice_stats import OnlyColumns, SliceIndex

Numbers = npt.NDArray[np.int64]


class Block(IntEnum):
    """What a file has in it."""

    BASE = 0
    """Whole rows: the file is a base file."""
    DATA = 1
    """Rows that replace older ones: the file is a data delta file."""
    DELETE = 2
    """Keys of deleted rows: the file is a delete delta file."""
    ROLLBACK = 3
    """The name of a commit that is undone."""


class State(IntEnum):
    """What became of the commit that wrote a file."""

    COMMITTED = 0
    FAILED = 1
    """The commit failed or is still going on; it is not committed in any case."""
    ROLLED_BACK = 2
    REPLACED = 3
    """Committed, but a newer base file has the rows of the slice now."""


_NEVER: Final = (False, False, False, False)
_COMMITTED: Final = (True, False, False, False)
_HOLDS_ROWS: Final = np.array([_COMMITTED, _COMMITTED, _NEVER, _NEVER])
"""For each `Block` and each `State`, whether the file has rows of the table."""
_HIDES_ROWS: Final = np.array([_NEVER, _COMMITTED, _COMMITTED, _NEVER])


@dataclass(frozen=True, eq=False)
class Slices:
    """The slices of a table, as arrays over its files."""

    codes: Numbers
    """For each file, the number of its slice."""
    names: pa.Array
    """For each slice, its `fileGroup` as text; null for a file without one, which is a slice of its own."""
    block: npt.NDArray[np.int8]
    """For each file, a `Block`."""
    state: npt.NDArray[np.int8]
    """For each file, a `State`."""
    seq: Numbers
    """For each file, its rank in the order of commits; a delta file hides rows of files with a lower one."""
    key: tuple[str, ...] = ()
    """The columns of the record key."""
    sets: ColumnSets | None = None
    """Which columns each file sets; None if every file has whole rows."""

    @classmethod
    def of(
        cls,
        file_group: pa.Array | pa.ChunkedArray,
        block: npt.NDArray[np.int8],
        state: npt.NDArray[np.int8],
        seq: Numbers,
        *,
        key: tuple[str, ...] = (),
        sets: ColumnSets | None = None,
    ) -> Slices:
        """Returns slices from columns over the same files; a file with a null `file_group` is a slice of its own."""
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
        """Returns True for each file whose rows can be rows of the table."""
        rows: FileMask = _HOLDS_ROWS[self.block, self.state]
        return rows

    @cached_property
    def hides_rows(self) -> FileMask:
        """Returns True for each file whose keys can hide, or change, rows of older files."""
        hides: FileMask = _HIDES_ROWS[self.block, self.state]
        return hides

    @cached_property
    def first_files(self) -> Numbers:
        """Returns for each file the index of the first file of its slice."""
        first = np.full(self.count, len(self.codes))
        np.minimum.at(first, self.codes, np.arange(len(self.codes)))
        first_files: Numbers = first[self.codes]
        return first_files

    @property
    def is_delta(self) -> FileMask:
        """Returns True for each file that is not a base file."""
        deltas: FileMask = self.block != Block.BASE
        return deltas

    is_log = renamed("is_log", "is_delta", removed_in="0.3")

    def having(self, files: FileMask) -> FileMask:
        """Returns True for each slice that has one of these files."""
        found = np.zeros(self.count, np.bool_)
        found[self.codes[files]] = True
        return found

    def whole(self, rows: FileMask) -> FileMask:
        """Returns True for each file with rows in a slice that has one of these files."""
        return self.holds_rows & self.having(rows)[self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class PrunedSlices:
    """The slices and files that are left for a condition."""

    kept: FileMask
    """True for each slice that may show a row."""
    kept_before: FileMask
    """True for each slice that would be kept if every file without statistics kept its slice."""
    rows: FileMask
    """True for each file whose rows are read."""
    deltas: FileMask
    """True for each delta file whose keys are needed, because they may hide rows that are read."""
    bare: FileMask
    """True for each file whose rows are read, and of whose wanted rows no delta file can change any."""
    inside: FileMask
    """True for each file that its partition values do not exclude."""
    columns: tuple[FieldPath, ...]
    """The columns whose statistics were used."""

    @property
    def files(self) -> FileMask:
        """Returns True for each file that is opened."""
        return self.rows | self.deltas

    logs = renamed("logs", "deltas", removed_in="0.3")

    @property
    def counts(self) -> SliceCounts:
        """Returns how many slices there are, are kept, and would be kept by the simpler rule."""
        return SliceCounts(len(self.kept), int(self.kept.sum()), int(self.kept_before.sum()))


def prune_slices(
    slices: Slices,
    index: ColumnStatsIndex,
    predicate: Predicate | None,
    merge_mode: MergeMode,
    *,
    within: FileMask | None = None,
    keep_errors: bool = True,
) -> PrunedSlices:
    """Returns the slices that may show a row for which the predicate is TRUE, and the files to read.

    A slice is skipped if none of its files with rows can match.

    Args:
        slices: The slices of the table.
        index: The statistics of the same files.
        predicate: The condition, bound to the table's schema; None if all rows are wanted.
        merge_mode: How rows with the same key are merged.
        within: The files whose rows are wanted; delta files outside of it are read for their keys.
        keep_errors: Whether a file is read in which the condition may raise, and be TRUE for no row.

    Returns:
        The slices that are kept and the files to read.
    """
    every = np.ones(index.num_rows, np.bool_)
    found = Pruned(every, every, ())
    if predicate is not None:
        found = prune(predicate, index, keep_errors=keep_errors)
    inside = found.kept_by_partition if within is None else found.kept_by_partition & within
    # A delta file is needed if it may have the key of a row that satisfies the condition, whatever its own
    # row has in the other columns.
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
    deltas = slices.hides_rows & keyed & (slices.seq > _oldest(slices, rows)[slices.codes])
    bare = rows & (slices.seq >= _newest(slices, deltas)[slices.codes])
    if merge_mode is not MergeMode.RECORD:
        alone = np.bincount(slices.codes[rows], minlength=slices.count) == 1
        bare &= ~slices.is_delta & alone[slices.codes]
    kept = slices.having(rows)
    unindexed = slices.is_delta & ~slices.holds_rows & (slices.state != State.REPLACED)
    kept_before = kept | slices.having(unindexed & inside)
    return PrunedSlices(kept, kept_before, rows, deltas, bare, inside, found.columns)


def _combined(
    slices: Slices,
    index: ColumnStatsIndex,
    predicate: Predicate | None,
    candidates: FileMask,
    matching: FileMask,
) -> FileMask:
    """Returns the files whose rows, once they are combined column by column, may satisfy the predicate.

    Columns of one row may come from different files, so a slice with delta files is judged as a whole. A base
    file without delta files is judged by itself.
    """
    if predicate is None:
        return candidates
    merged = slices.having(candidates & slices.is_delta)
    together = candidates & merged[slices.codes]
    kept = slices.having(candidates & ~together & matching)
    union = SliceIndex(index, slices.codes, together, slices.sets)
    kept[union.numbers] = may_match(predicate, union)
    return candidates & kept[slices.codes]


def _oldest(slices: Slices, rows: FileMask) -> Numbers:
    """Returns for each slice the lowest `seq` of these files; the largest number if it has none of them."""
    oldest = np.full(slices.count, np.iinfo(np.int64).max)
    np.minimum.at(oldest, slices.codes[rows], slices.seq[rows])
    return oldest


def _newest(slices: Slices, deltas: FileMask) -> Numbers:
    """Returns for each slice the highest `seq` of these files; the smallest number if it has none of them."""
    newest = np.full(slices.count, np.iinfo(np.int64).min)
    np.maximum.at(newest, slices.codes[deltas], slices.seq[deltas])
    return newest


# The slices of a snapshot, in which every live file is committed and its action says what it is.

_known: Final[WeakKeyDictionary[ColumnStatsIndex, Slices | None]] = WeakKeyDictionary()
"""The slices of snapshots, kept for the next plan as long as the snapshot's index."""


def slices_of(snapshot: Snapshot) -> Slices | None:
    """Returns the slices of a snapshot; None if it has no delta files, so that every file is a slice of its own."""
    index = snapshot.index()
    if index not in _known:
        _known[index] = _slices(snapshot)
    return _known[index]


def _slices(snapshot: Snapshot) -> Slices | None:
    is_delta = as_mask(pc.equal(snapshot.column("kind"), "log"))
    if not is_delta.any():
        return None
    blocks = snapshot.column("block")
    _check_blocks(blocks, is_delta)
    deletes = as_mask(pc.equal(blocks, "delete"))
    block = np.where(is_delta, np.where(deletes, Block.DELETE, Block.DATA), Block.BASE).astype(np.int8)
    rule, sets = MergeRule.of(snapshot.properties), None
    if not rule.key:
        raise ProtocolError(
            "the table has delta files, but no record key by which their rows are merged with older ones",
            hint="Table.check() lists these files; a writer that does not know this format has added them",
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


def _check_blocks(blocks: pa.ChunkedArray, is_delta: FileMask) -> None:
    known = as_mask(pc.is_in(blocks, pa.array(["data", "delete"])))
    if (is_delta & ~known).any():
        found = blocks.filter(pa.array(is_delta & ~known))[0].as_py()
        raise ProtocolError(
            f"the table has delta files of the kind {found!r}, which this version of the library does not know",
            hint="upgrade indextables, or compact the table with the version that wrote it",
        )


def whole_slices(snapshot: Snapshot, must: FileMask) -> FileMask:
    """Returns the files of slices of which every file that holds rows must match.

    That holds where columns are combined too: the newest file that sets a column of the condition
    decides it, whatever the others say, or it would not be known to match.
    """
    slices = slices_of(snapshot)
    if slices is None:
        return must
    spared = slices.having(slices.holds_rows & ~must)
    mask: FileMask = (slices.having(slices.holds_rows) & ~spared)[slices.codes]
    return mask


def alone_in_slice(snapshot: Snapshot) -> FileMask:
    """Returns the files that are the only one of their slice."""
    slices = slices_of(snapshot)
    if slices is None:
        return np.ones(snapshot.num_files, np.bool_)
    mask: FileMask = np.bincount(slices.codes, minlength=slices.count)[slices.codes] == 1
    return mask


def shown_records(snapshot: Snapshot, files: FileMask) -> int | None:
    """Returns how many rows these files show.

    None where log files hide some of them, or the log does not say.
    """
    counts = snapshot.index().source.num_records().filter(pa.array(files))
    if counts.null_count or (files & ~alone_in_slice(snapshot)).any():
        return None
    total: int = pc.sum(counts).as_py() or 0
    return total
