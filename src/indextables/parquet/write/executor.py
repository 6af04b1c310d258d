"""The executor that reads and writes splits in this process, a few at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import Config
from indextables.core.predicate.nodes import Predicate
from indextables.core.stats import SplitStats, collect_stats
from indextables.core.stats.collect import merge_stats
from indextables.core.stats.columns import FileMask
from indextables.core.types import FieldPath, StructType
from indextables.errors import StorageError
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Add
from indextables.parquet.read.read import ReadRequest, Unit, count_rows, read_batches
from indextables.parquet.read.row_filter import to_row_mask
from indextables.parquet.write.by_key import ArrowChange
from indextables.parquet.write.cluster import lay_out, pack
from indextables.parquet.write.conform import as_reader, check_fits, conform, source_schema
from indextables.parquet.write.within import all_within
from indextables.parquet.write.write import Rewritten, WriteTarget, Written, write_splits
from indextables.plan.merge_rule import MergeMode, Piece
from indextables.storage.base import LogStore

_THREADS: Final = 2
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class ArrowExecutor:
    """Writes Arrow, pandas and Polars data; a few row groups for each thread are in memory."""

    store: LogStore

    @property
    def at_once(self) -> int:
        """Returns how many splits are worked on at once: few, so that progress can be seen."""
        return _AT_ONCE

    def prepare(self, data: object) -> pa.RecordBatchReader:
        """Returns a stream over the data, which can be read once."""
        return as_reader(data)

    def source_schema(self, data: pa.RecordBatchReader) -> StructType:
        """Returns the schema of a table of exactly this data."""
        return source_schema(data.schema)

    def write(
        self,
        data: pa.RecordBatchReader,
        target: WriteTarget,
        *,
        merge: bool = False,
        within: Predicate | None = None,
    ) -> Written:
        """Writes the data as new splits; if a row does not fit, nothing is left behind."""
        check_fits(data.schema, target.schema, merge=merge)
        batches: Iterable[pa.RecordBatch] = conform(data, target.schema)
        if within is not None:
            batches = all_within(batches, within, target.partition_columns)
        return write_splits(batches, self.store, target)

    def change_by_key(
        self, data: pa.RecordBatchReader | None, config: Config
    ) -> AbstractContextManager[ArrowChange]:
        """Returns the work of one change by key, with all its rows in memory."""
        del config
        return nullcontext(ArrowChange(self.store, None if data is None else data.read_all()))

    def rewrite(
        self, snapshot: Snapshot, mask: FileMask, condition: Predicate, target: WriteTarget
    ) -> dict[str, Rewritten]:
        """Writes each of these files anew without the rows for which the condition is TRUE.

        Files that have no such row are left out.
        """
        splits = snapshot.splits(mask)
        with ThreadPoolExecutor(_THREADS, "indextables-rewrite") as pool:
            work = {s.path: pool.submit(self._rewrite, s, condition, target) for s in splits}
            try:
                found = {path: future.result() for path, future in work.items()}
            except BaseException:
                pool.shutdown(cancel_futures=True)
                self._discard(future for future in work.values() if not future.cancelled())
                raise
        return {path: result for path, result in found.items() if result is not None}

    def collect(
        self, splits: Sequence[Split], schema: StructType, columns: Sequence[FieldPath]
    ) -> dict[str, SplitStats]:
        """Returns exact statistics of these leaves for each split, from its rows."""
        names = {path[0] for path in columns}
        wanted = StructType(tuple(field for field in schema if field.name in names))
        request = ReadRequest(self.store, schema, wanted.names)

        def collect_one(split: Split) -> SplitStats:
            pieces = [collect_stats(b, wanted, columns) for b in read_batches(request, [split])]
            return merge_stats(pieces) if pieces else SplitStats(num_records=0)

        with ThreadPoolExecutor(_THREADS, "indextables-analyze") as pool:
            return dict(zip([s.path for s in splits], pool.map(collect_one, splits), strict=True))

    def _discard(self, work: Iterable[Future[Rewritten | None]]) -> None:
        """Deletes what was written before another split failed, because no commit will name it."""
        for future in work:
            done = future.result() if future.exception() is None else None
            for add in done.written.adds if done else ():
                with suppress(StorageError):
                    self.store.delete(add.path)

    def cluster(
        self, groups: Sequence[Sequence[Split]], target: WriteTarget, clustering: Any | None
    ) -> list[Written]:
        """Writes each set of splits as new ones, packed into fewer or sorted along a curve."""
        if clustering is None:
            return [pack(self.store, splits, target) for splits in groups]
        columns, curve = clustering.columns, clustering.curve
        return [lay_out(self.store, splits, target, columns, curve) for splits in groups]

    def compact(
        self,
        snapshot: Snapshot,  # noqa: ARG002 - an engine that plans its reads needs it
        pieces: Sequence[Piece],
        target: WriteTarget,
    ) -> Iterator[Written]:
        """Writes the rows that each slice shows as new files, slice by slice."""
        return compact_slices(self.store, pieces, target)

    def _rewrite(self, split: Split, condition: Predicate, target: WriteTarget) -> Rewritten | None:
        # The columns of the condition are read first, because most splits that may match have no such row.
        matching = count_rows(ReadRequest(self.store, target.schema, (), condition), [split])
        if matching == 0:
            return None
        whole = ReadRequest(self.store, target.schema, target.schema.names)
        rest = _without(read_batches(whole, [split]), condition)
        written = write_splits(rest, self.store, target)
        adds = tuple(_in_place_of(split, add) for add in written.adds)
        return Rewritten(replace(written, adds=adds), matching)


def _in_place_of(split: Split, add: Add) -> Add:
    """Returns the add in the slice of the old file and with its `seq`, so that newer delta files stay newer."""
    return replace(add, seq=split.seq, file_group=split.file_group, kind=split.kind)


def _without(batches: Iterable[pa.RecordBatch], condition: Predicate) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.filter(pc.invert(to_row_mask(condition, batch)))


# The rows that slices show, as new base files.


def compact_slices(store: LogStore, pieces: Sequence[Piece], target: WriteTarget) -> Iterator[Written]:
    """Writes the rows that each slice shows as new files and yields these, slice by slice; a slice may have none."""
    request = ReadRequest(store, target.schema, target.schema.names)
    for piece in pieces:
        yield write_splits(read_batches(request, _units(piece)), store, target)


def _units(piece: Piece) -> Sequence[Unit]:
    """Returns what is read of the slice: its files as they are if no delta file can hide a row."""
    if not piece.files:
        return ()
    oldest = min(split.seq for split in piece.files)
    if piece.mode is MergeMode.RECORD and all(delta.seq <= oldest for delta in piece.deltas):
        return piece.files
    return (piece,)
