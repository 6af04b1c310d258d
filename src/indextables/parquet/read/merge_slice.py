"""Merges the files of a slice by the record key into the rows that it shows.

In the mode RECORD a row is shown unless a newer delta file of the slice has its key. In the mode COLUMNS
the rows of each key are combined into one: each column comes from the newest file that sets it since the
last delete of the key, and a column that no such file sets is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow.fs import FileSystem

from indextables.core.types import StructType, schema_to_arrow
from indextables.log.state.rows import Split
from indextables.parquet.read.key_index import KeyIndex, Numbers, hidden_mask, newer_mask
from indextables.parquet.read.row_filter import to_row_mask
from indextables.parquet.read.split import ReadRequest, read_split
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import MergeMode, Piece
from indextables.plan.report import Recorder

_BATCH_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 30
"""Bytes of text that surely fit into one array."""


# The mode COLUMNS: the rows of each key are combined into one.


def combined_rows(
    request: ReadRequest, piece: Piece, filesystem: FileSystem, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Yields a row for each key, in the order of its oldest rows; the predicate is applied to the whole row."""
    fields = StructType(request.needed)
    wanted = request.by_key(piece.key).with_columns(*fields.names, *piece.key)
    key = list(piece.key)
    files = [_read_file(wanted, key, split, filesystem, recorder) for split in piece.files]
    for delta in piece.deltas:
        if delta.block == "delete":
            only_keys = wanted.with_columns(*key)
            batches = read_split(only_keys, delta, filesystem, recorder)
            deleted = pa.Table.from_batches(batches, only_keys.result_schema)
            files = [_without(file, key, deleted, delta.seq) for file in files]
    index = KeyIndex.of(pa.concat_tables([file.rows.select(key) for file in files]))
    columns = [_Column.of(name, files, index) for name in fields.names]
    schema = schema_to_arrow(fields)
    _, first = np.unique(index.numbers, return_index=True)
    order = np.argsort(first)
    for start in range(0, len(order), _BATCH_ROWS):
        chosen = order[start : start + _BATCH_ROWS]
        arrays = [c.take(chosen, f.type) for c, f in zip(columns, schema, strict=True)]
        yield _finished(request, arrays, schema, len(chosen))


def _finished(
    request: ReadRequest, arrays: Sequence[pa.Array], schema: pa.Schema, rows: int
) -> pa.RecordBatch:
    # One more column, because a batch without columns would not know how many rows it has.
    counted = schema.append(pa.field("", pa.null()))
    batch = pa.RecordBatch.from_arrays([*arrays, pa.nulls(rows)], schema=counted)
    if request.predicate is not None:
        batch = batch.filter(to_row_mask(request.predicate, batch))
    return batch.select(list(request.columns))


@dataclass(frozen=True, slots=True)
class _File:
    """The rows of one file, with the columns that it sets."""

    seq: int
    rows: pa.Table


def _read_file(
    wanted: ReadRequest, key: list[str], split: Split, filesystem: FileSystem, recorder: Recorder
) -> _File:
    sets = columns_set(split.extra_json)
    known = {*key, *split.partition_values, *(wanted.columns if sets is None else sets)}
    here = wanted.with_columns(*(name for name in wanted.columns if name in known))
    batches = read_split(here, split, filesystem, recorder)
    return _File(split.seq, pa.Table.from_batches(batches, here.result_schema))


def _without(file: _File, key: list[str], deleted: pa.Table, seq: int) -> _File:
    if file.seq >= seq:
        return file
    gone = hidden_mask(file.rows.select(key), file.seq, deleted, seq)
    return replace(file, rows=file.rows.filter(pa.array(~gone))) if gone.any() else file


@dataclass(frozen=True, slots=True)
class _Column:
    """The values of a column in all files that set it, and the row of each key's newest value (-1: none)."""

    values: pa.Array | pa.ChunkedArray | None
    row_of_key: Numbers

    @classmethod
    def of(cls, name: str, files: Sequence[_File], index: KeyIndex) -> _Column:
        row_of_key = np.full(index.size, -1, np.int64)
        chunks: list[pa.Array] = []
        start = length = 0
        for file in files:  # oldest first, so that a newer row replaces an older one
            numbers = index.numbers[start : start + file.rows.num_rows]
            start += file.rows.num_rows
            if name in file.rows.column_names:
                row_of_key[numbers] = np.arange(length, length + len(numbers))
                length += len(numbers)
                chunks += file.rows.column(name).chunks
        values = pa.chunked_array(chunks) if chunks else None
        if values is not None and values.nbytes < _MOST_BYTES:
            values = values.combine_chunks()
        return cls(values, row_of_key)

    def take(self, keys: Numbers, kind: pa.DataType) -> pa.Array:
        """Returns the values of these keys."""
        if self.values is None:
            return pa.nulls(len(keys), kind)
        rows = self.row_of_key[keys]
        found = self.values.take(pa.array(rows, mask=rows < 0))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


# The mode RECORD: rows with keys in newer delta files are left out.


def read_piece(
    request: ReadRequest, piece: Piece, filesystem: FileSystem, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Returns the rows of a slice, as a query sees them, for which the predicate is TRUE.

    They come in the order of their commits, and within a file in the order of its rows. The delta files are in
    memory during the merge; in the mode COLUMNS, the needed columns of all files are.
    """
    if piece.mode is MergeMode.COLUMNS:
        return combined_rows(request, piece, filesystem, recorder)
    return _selected_rows(request, piece, filesystem, recorder)


def _selected_rows(
    request: ReadRequest, piece: Piece, filesystem: FileSystem, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Yields the rows that no newer delta file replaces or deletes.

    The predicate is applied first, so that it can skip row groups of the base file. That makes no difference,
    because the keys alone decide which rows are hidden.
    """
    oldest = min(split.seq for split in piece.files)
    shown = {split.path for split in piece.files}
    deltas = {
        split.path: _Delta.read(
            request, piece, split, filesystem, recorder, with_rows=split.path in shown
        )
        for split in piece.deltas
        if split.seq > oldest
    }
    newer = _Newer.of(list(deltas.values()))
    wide = request.with_columns(*request.columns, *piece.key)
    for split in piece.files:
        delta = deltas.pop(split.path, None)
        batches = read_split(wide, split, filesystem, recorder) if delta is None else delta.rows
        yield from newer.shown(batches, split.seq, request.columns)


@dataclass(frozen=True, slots=True)
class _Delta:
    """What a merge needs of a delta file, which is read once."""

    seq: int
    keys: pa.Table
    """The keys of all rows that may hide a wanted row, whatever the predicate says of the rows themselves."""
    rows: list[pa.RecordBatch]
    """The rows for which the predicate is TRUE; none if only the keys of the file are needed."""

    @classmethod
    def read(
        cls,
        request: ReadRequest,
        piece: Piece,
        split: Split,
        filesystem: FileSystem,
        recorder: Recorder,
        *,
        with_rows: bool,
    ) -> _Delta:
        every = request.by_key(piece.key)
        only_keys = every.with_columns(*piece.key)
        needed = (field.name for field in request.needed)
        wanted = every.with_columns(*needed, *piece.key) if with_rows else only_keys
        keys, rows = [], []
        for batch in read_split(wanted, split, filesystem, recorder):
            keys.append(batch.select(only_keys.columns))
            if with_rows:
                rows.append(_matching(request, batch))
        return cls(split.seq, pa.Table.from_batches(keys, only_keys.result_schema), rows)


def _matching(request: ReadRequest, batch: pa.RecordBatch) -> pa.RecordBatch:
    if request.predicate is None:
        return batch
    return batch.filter(to_row_mask(request.predicate, batch))


@dataclass(frozen=True, slots=True)
class _Newer:
    """The keys in the delta files of a slice, each with the `seq` of the newest file that has it."""

    columns: list[str]
    index: KeyIndex
    newest: Numbers

    @classmethod
    def of(cls, deltas: list[_Delta]) -> _Newer:
        keys = pa.concat_tables([delta.keys for delta in deltas])
        index = KeyIndex.of(keys)
        seq = np.repeat([delta.seq for delta in deltas], [delta.keys.num_rows for delta in deltas])
        return cls(keys.column_names, index, index.newest(seq))

    def shown(
        self, batches: Iterable[pa.RecordBatch], seq: int, columns: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a file with this `seq` whose keys no newer delta file has."""
        for chunk in _chunks(batches, self.index.size):
            keys = pa.Table.from_batches(chunk).select(self.columns)
            shown = pa.array(~newer_mask(self.index.find(keys), seq, self.newest))
            start = 0
            for batch in chunk:
                yield batch.filter(shown[start : start + batch.num_rows]).select(list(columns))
                start += batch.num_rows


def _chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yields batches in lists with at least `rows` rows, because a lookup of few costs as much as of many."""
    chunk: list[pa.RecordBatch] = []
    waiting = 0
    for batch in batches:
        chunk.append(batch)
        waiting += batch.num_rows
        if waiting >= rows:
            yield chunk
            chunk, waiting = [], 0
    if chunk:
        yield chunk
