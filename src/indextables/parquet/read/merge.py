"""A slice into rows: its base file and its log files merged by the record key.

In record mode a row of any file is shown unless a newer log file of the slice has its key. In columns
mode the rows of one key are combined: `arrow.combine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.log.state.rows import Split
from indextables.parquet.read.filters import to_row_mask
from indextables.parquet.read.key_index import KeyIndex, Numbers, newer_mask
from indextables.parquet.read.merge_slice import combined_rows
from indextables.parquet.read.split_reader import Reading, read_split
from indextables.plan.merge_rule import MergeMode, Piece
from indextables.plan.report import Recorder


def read_piece(
    reading: Reading, piece: Piece, filesystem: Any, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """The rows of the slice as a query sees them, those for which the predicate is TRUE.

    In the order of their commits, then of their position. Its log files are in memory meanwhile, in
    columns mode the columns needed of all its files.
    """
    if piece.mode is MergeMode.COLUMNS:
        return combined_rows(reading, piece, filesystem, recorder)
    return _selected_rows(reading, piece, filesystem, recorder)


def _selected_rows(
    reading: Reading, piece: Piece, filesystem: Any, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """Rows that no newer log replaces or deletes.

    The predicate comes first: which rows are hidden is told by their keys alone, so the order makes no
    difference, and filters reach the base file.
    """
    oldest = min(split.seq for split in piece.files)
    shown = {split.path for split in piece.files}
    logs = {
        log.path: _Log.read(reading, piece, log, filesystem, recorder, with_rows=log.path in shown)
        for log in piece.logs
        if log.seq > oldest
    }
    newer = _Newer.of(list(logs.values()))
    wide = reading.with_columns(*reading.columns, *piece.key)
    for split in piece.files:
        log = logs.pop(split.path, None)
        batches = read_split(wide, split, filesystem, recorder) if log is None else log.rows
        yield from newer.shown(batches, split.seq, reading.columns)


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
        reading: Reading,
        piece: Piece,
        log: Split,
        filesystem: Any,
        recorder: Recorder,
        *,
        with_rows: bool,
    ) -> _Log:
        every = reading.by_key(piece.key)
        only_keys = every.with_columns(*piece.key)
        needed = (field.name for field in reading.needed)
        wanted = every.with_columns(*needed, *piece.key) if with_rows else only_keys
        keys, rows = [], []
        for batch in read_split(wanted, log, filesystem, recorder):
            keys.append(batch.select(only_keys.columns))
            if with_rows:
                rows.append(_matching(reading, batch))
        return cls(log.seq, pa.Table.from_batches(keys, only_keys.result_schema), rows)


def _matching(reading: Reading, batch: Any) -> Any:
    if reading.predicate is None:
        return batch
    return batch.filter(to_row_mask(reading.predicate, batch))


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
        """The rows of a file of this age that no newer log has the key of."""
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
