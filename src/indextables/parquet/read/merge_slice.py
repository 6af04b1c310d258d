"""A slice whose log files set some columns only: the rows of one key combined into one.

Each column is what the newest file that sets it has, back to the last delete of the key; a column that
no file since then sets is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

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
"""What one array of texts certainly holds."""


def combined_rows(
    request: ReadRequest, piece: Piece, filesystem: Any, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Yields one row per key, at the place of its oldest part; the predicate sees it as a whole."""
    fields = StructType(request.needed)
    wanted = request.by_key(piece.key).with_columns(*fields.names, *piece.key)
    key = list(piece.key)
    parts = [_read_part(wanted, key, split, filesystem, recorder) for split in piece.files]
    for log in piece.logs:
        if log.block == "delete":
            only_keys = wanted.with_columns(*key)
            batches = read_split(only_keys, log, filesystem, recorder)
            deleted = pa.Table.from_batches(batches, only_keys.result_schema)
            parts = [_without(part, key, deleted, log.seq) for part in parts]
    index = KeyIndex.of(pa.concat_tables([part.rows.select(key) for part in parts]))
    columns = [_Column.of(name, parts, index) for name in fields.names]
    schema = schema_to_arrow(fields)
    _, first = np.unique(index.numbers, return_index=True)
    order = np.argsort(first)
    for start in range(0, len(order), _BATCH_ROWS):
        chosen = order[start : start + _BATCH_ROWS]
        arrays = [c.take(chosen, f.type) for c, f in zip(columns, schema, strict=True)]
        yield _finished(request, arrays, schema, len(chosen))


def _finished(request: ReadRequest, arrays: list[Any], schema: Any, rows: int) -> pa.RecordBatch:
    # one column more: a batch without any would not know how many rows it has
    counted = schema.append(pa.field("", pa.null()))
    batch = pa.RecordBatch.from_arrays([*arrays, pa.nulls(rows)], schema=counted)
    if request.predicate is not None:
        batch = batch.filter(to_row_mask(request.predicate, batch))
    return batch.select(list(request.columns))


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one file, with the columns that it sets."""

    seq: int
    rows: pa.Table


def _read_part(
    wanted: ReadRequest, key: list[str], split: Split, filesystem: Any, recorder: Recorder
) -> _Part:
    sets = columns_set(split.extra_json)
    known = {*key, *split.partition_values, *(wanted.columns if sets is None else sets)}
    here = wanted.with_columns(*(name for name in wanted.columns if name in known))
    batches = read_split(here, split, filesystem, recorder)
    return _Part(split.seq, pa.Table.from_batches(batches, here.result_schema))


def _without(part: _Part, key: list[str], deleted: pa.Table, seq: int) -> _Part:
    if part.seq >= seq:
        return part
    gone = hidden_mask(part.rows.select(key), part.seq, deleted, seq)
    return replace(part, rows=part.rows.filter(pa.array(~gone))) if gone.any() else part


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of all files that set it, and for each key where its newest value is (-1: nowhere)."""

    values: Any
    places: Numbers

    @classmethod
    def of(cls, name: str, parts: Sequence[_Part], index: KeyIndex) -> _Column:
        places = np.full(index.size, -1, np.int64)
        chunks: list[Any] = []
        start = length = 0
        for part in parts:  # oldest first: what is newer is written over it
            numbers = index.numbers[start : start + part.rows.num_rows]
            start += part.rows.num_rows
            if name in part.rows.column_names:
                places[numbers] = np.arange(length, length + len(numbers))
                length += len(numbers)
                chunks += part.rows.column(name).chunks
        values = pa.chunked_array(chunks) if chunks else None
        if values is not None and values.nbytes < _MOST_BYTES:
            values = values.combine_chunks()
        return cls(values, places)

    def take(self, keys: Numbers, kind: Any) -> pa.Array:
        """Returns the values of these keys."""
        if self.values is None:
            return pa.nulls(len(keys), kind)
        places = self.places[keys]
        found = self.values.take(pa.array(places, mask=places < 0))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


# A slice into rows: its base file and its log files merged by the record key.
#
# In record mode a row of any file is shown unless a newer log file of the slice has its key. In columns
# mode the rows of one key are combined: `arrow.combine`.


def read_piece(
    request: ReadRequest, piece: Piece, filesystem: Any, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Returns the rows of the slice as a query sees them, those for which the predicate is TRUE.

    In the order of their commits, then of their position. Its log files are in memory meanwhile, in
    columns mode the columns needed of all its files.
    """
    if piece.mode is MergeMode.COLUMNS:
        return combined_rows(request, piece, filesystem, recorder)
    return _selected_rows(request, piece, filesystem, recorder)


def _selected_rows(
    request: ReadRequest, piece: Piece, filesystem: Any, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Yields rows that no newer log replaces or deletes.

    The predicate comes first: which rows are hidden is told by their keys alone, so the order makes no
    difference, and filters reach the base file.
    """
    oldest = min(split.seq for split in piece.files)
    shown = {split.path for split in piece.files}
    logs = {
        log.path: _Log.read(request, piece, log, filesystem, recorder, with_rows=log.path in shown)
        for log in piece.logs
        if log.seq > oldest
    }
    newer = _Newer.of(list(logs.values()))
    wide = request.with_columns(*request.columns, *piece.key)
    for split in piece.files:
        log = logs.pop(split.path, None)
        batches = read_split(wide, split, filesystem, recorder) if log is None else log.rows
        yield from newer.shown(batches, split.seq, request.columns)


@dataclass(frozen=True, slots=True)
class _Log:
    """What a merge needs of a log file, read in one go."""

    seq: int
    keys: pa.Table
    """Of all rows whose key may be wanted, whatever the predicate says of the rows."""
    rows: list[Any]
    """Those the predicate is TRUE for; none where the file is needed for its keys only."""

    @classmethod
    def read(
        cls,
        request: ReadRequest,
        piece: Piece,
        log: Split,
        filesystem: Any,
        recorder: Recorder,
        *,
        with_rows: bool,
    ) -> _Log:
        every = request.by_key(piece.key)
        only_keys = every.with_columns(*piece.key)
        needed = (field.name for field in request.needed)
        wanted = every.with_columns(*needed, *piece.key) if with_rows else only_keys
        keys, rows = [], []
        for batch in read_split(wanted, log, filesystem, recorder):
            keys.append(batch.select(only_keys.columns))
            if with_rows:
                rows.append(_matching(request, batch))
        return cls(log.seq, pa.Table.from_batches(keys, only_keys.result_schema), rows)


def _matching(request: ReadRequest, batch: Any) -> Any:
    if request.predicate is None:
        return batch
    return batch.filter(to_row_mask(request.predicate, batch))


@dataclass(frozen=True, slots=True)
class _Newer:
    """The keys of all logs of a slice, each with the newest log that has it."""

    columns: list[str]
    index: KeyIndex
    newest: Numbers

    @classmethod
    def of(cls, logs: list[_Log]) -> _Newer:
        keys = pa.concat_tables([log.keys for log in logs])
        index = KeyIndex.of(keys)
        seq = np.repeat([log.seq for log in logs], [log.keys.num_rows for log in logs])
        return cls(keys.column_names, index, index.newest(seq))

    def shown(self, batches: Iterable[Any], seq: int, columns: tuple[str, ...]) -> Iterator[Any]:
        """Yields the rows of a file of this age that no newer log has the key of."""
        for chunk in _chunks(batches, self.index.size):
            keys = pa.Table.from_batches(chunk).select(self.columns)
            shown = pa.array(~newer_mask(self.index.find(keys), seq, self.newest))
            start = 0
            for batch in chunk:
                yield batch.filter(shown[start : start + batch.num_rows]).select(list(columns))
                start += batch.num_rows


def _chunks(batches: Iterable[Any], rows: int) -> Iterator[list[Any]]:
    """Batches together until they have that many rows, so that looking them up costs what reading them does."""
    chunk: list[Any] = []
    waiting = 0
    for batch in batches:
        chunk.append(batch)
        waiting += batch.num_rows
        if waiting >= rows:
            yield chunk
            chunk, waiting = [], 0
    if chunk:
        yield chunk
