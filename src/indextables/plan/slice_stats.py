"""Other views of a table's statistics: of some columns only, or of whole slices."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.core.prune.bounds import Bounds, ByteBounds, IntBounds
from indextables.core.prune.index import ColumnStats, ColumnStatsIndex, StatsSource
from indextables.core.states import Cuts
from indextables.core.stats.columns import FileMask, is_null, without
from indextables.core.types import FieldPath, StructType
from indextables.plan.column_sets import ColumnSets


class OnlyColumns(ColumnStatsIndex):
    """The statistics of some columns and of partition columns; nothing is known of other columns."""

    def __init__(self, index: ColumnStatsIndex, columns: Collection[str]) -> None:
        super().__init__(_NothingKnown(index.source))
        self._index = index
        self._names = frozenset(columns) | frozenset(index.source.partition_columns)

    @property
    def may_have_rows(self) -> FileMask:
        """Returns False for each split that is known to be empty."""
        return self._index.may_have_rows

    def column(self, path: FieldPath) -> ColumnStats:
        """Returns the column's statistics, which are decoded once for both indexes."""
        return self._index.column(path) if path[0] in self._names else super().column(path)

    def bounds(self, path: FieldPath) -> Bounds:
        """Returns the column's bounds as ordinals, which are made once for both indexes."""
        return self._index.bounds(path) if path[0] in self._names else super().bounds(path)


class _NothingKnown:
    """Splits of which only the partition values are known."""

    def __init__(self, source: StatsSource) -> None:
        self._source = source

    @property
    def num_rows(self) -> int:
        return self._source.num_rows

    @property
    def schema(self) -> StructType:
        return self._source.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self._source.partition_columns

    def num_records(self) -> None:
        return None

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> None:  # noqa: ARG002
        return None

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> None:  # noqa: ARG002
        return None

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:  # noqa: ARG002
        return None

    def partition_value(self, name: str) -> pa.Array | pa.ChunkedArray:
        return self._source.partition_value(name)

    def absent(self, path: FieldPath) -> FileMask | None:  # noqa: ARG002
        return None


class _Integers(IntBounds):
    """The outermost bounds of slices, whose overlap with values is found file by file."""

    def __init__(
        self, lo: npt.NDArray[np.int64], hi: npt.NDArray[np.int64], overlap: Callable[[Cuts], FileMask]
    ) -> None:
        super().__init__(lo, hi)
        self._overlap = overlap

    def overlap(self, cuts: Cuts) -> FileMask:
        return self._overlap(cuts)


class _Bytes(ByteBounds):
    """The outermost bounds of slices in bytes, whose overlap with values is found file by file."""

    def __init__(
        self, lo: pa.Array, hi: pa.Array, overlap: Callable[[Cuts], FileMask], *, wide: bool
    ) -> None:
        super().__init__(lo, hi, wide)
        self._overlap = overlap

    def overlap(self, cuts: Cuts) -> FileMask:
        return self._overlap(cuts)


class SliceIndex(ColumnStatsIndex):
    """The statistics of slices, whose rows are combined column by column from all files.

    A file that does not set a column says nothing about its values. But its row may be all that is left of a
    key, and then the column is NULL.
    """

    def __init__(
        self,
        index: ColumnStatsIndex,
        codes: npt.NDArray[np.int64],
        files: FileMask,
        sets: ColumnSets | None = None,
    ) -> None:
        super().__init__(index.source)
        self._index = index
        self._sets = sets
        chosen = np.flatnonzero(files)
        self._files = chosen[np.argsort(codes[chosen], kind="stable")]
        self.numbers, self._starts, members = np.unique(
            codes[self._files], return_index=True, return_counts=True
        )
        """The slices that have any of the files, in the order of all arrays that are returned."""
        self._member_of = np.repeat(np.arange(len(self.numbers)), members)
        self._unions: dict[FieldPath, ColumnStats] = {}

    @property
    def num_rows(self) -> int:
        """Returns the number of slices."""
        return len(self.numbers)

    @property
    def may_have_rows(self) -> FileMask:
        """Returns False for each slice whose files are all known to be empty."""
        return self._any(self._index.may_have_rows[self._files])

    def column(self, path: FieldPath) -> ColumnStats:
        """Returns the column's statistics in each slice, united over its files once."""
        if path not in self._unions:
            self._unions[path] = self._union(path)
        return self._unions[path]

    def bounds(self, path: FieldPath) -> Bounds:
        """Returns the column's bounds in each slice.

        Comparisons of two columns use the outermost bounds. Comparisons with values look at each file, because
        there may be a gap between the values of a base file and of a delta file.
        """
        values = self._index.column(path).may_value[self._files] & self._setting(path)
        one_by_one = self._index.bounds(path)

        def overlap(cuts: Cuts) -> FileMask:
            return self._any(one_by_one.overlap(cuts)[self._files] & values)

        outer = super().bounds(path)
        if isinstance(outer, IntBounds):
            return _Integers(outer.lo, outer.hi, overlap)
        return _Bytes(outer.lo, outer.hi, overlap, wide=outer.wide)

    def _setting(self, path: FieldPath) -> FileMask:
        """Returns True for each file that sets the column, as every file does with a partition column."""
        if self._sets is None or self.is_partition(path):
            return np.ones(len(self._files), np.bool_)
        return self._sets.setting(path[0])[self._files]

    def _union(self, path: FieldPath) -> ColumnStats:
        stats, files, sets = self._index.column(path), self._files, self._setting(path)
        values = stats.may_value[files] & sets
        # A newer file may replace the value of an older one, so no bound need occur.
        nowhere = np.zeros(self.num_rows, np.bool_)
        return ColumnStats(
            self._outer("min", stats.lo, values),
            self._outer("max", stats.hi, values),
            may_null=self._any(stats.may_null[files] | ~sets),
            may_nan=self._any(stats.may_nan[files] & sets),
            may_value=self._any(values),
            lo_exact=nowhere,
            hi_exact=nowhere,
            missing=self._any(stats.missing[files] & sets),
        )

    def _outer(self, which: Literal["min", "max"], bounds: pa.Array, values: FileMask) -> pa.Array:
        """Returns the outermost bound of the files that may have a value; unknown if the bound of one is."""
        if pa.types.is_null(bounds.type):
            return pa.nulls(self.num_rows, bounds.type)
        ends = bounds.take(pa.array(self._files))
        open_ended = self._any(values & is_null(ends))
        table = pa.table({"slice": self._member_of, "end": without(ends, ~values)})
        found = table.group_by("slice", use_threads=False).aggregate([("end", which)])
        outer = found.sort_by("slice").column(f"end_{which}").combine_chunks()
        return without(outer, open_ended)

    def _any(self, of_files: FileMask) -> FileMask:
        if not len(of_files):
            return of_files
        found: FileMask = np.logical_or.reduceat(of_files, self._starts)
        return found
