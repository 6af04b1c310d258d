"""A slice whose log files set some columns only: the rows of one key combined into one.

Each column is what the newest file that sets it has, back to the last delete of the key; a column that
no file since then sets is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from indextables.core.types import StructType, schema_to_arrow
from indextables.log.state.rows import Split
from indextables.parquet.read.filters import to_row_mask
from indextables.parquet.read.key_index import KeyIndex, Numbers, hidden_mask
from indextables.parquet.read.split_reader import Reading, read_split
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import Piece
from indextables.plan.report import Recorder

_BATCH_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 30
"""What one array of texts certainly holds."""


def combined_rows(
    reading: Reading, piece: Piece, filesystem: Any, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    """One row per key, at the place of its oldest part; the predicate sees it as a whole."""
    fields = StructType(reading.needed)
    wanted = reading.by_key(piece.key).with_columns(*fields.names, *piece.key)
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
        yield _finished(reading, arrays, schema, len(chosen))


def _finished(reading: Reading, arrays: list[Any], schema: Any, rows: int) -> pa.RecordBatch:
    # one column more: a batch without any would not know how many rows it has
    counted = schema.append(pa.field("", pa.null()))
    batch = pa.RecordBatch.from_arrays([*arrays, pa.nulls(rows)], schema=counted)
    if reading.predicate is not None:
        batch = batch.filter(to_row_mask(reading.predicate, batch))
    return batch.select(list(reading.columns))


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one file, with the columns that it sets."""

    seq: int
    rows: pa.Table


def _read_part(
    wanted: Reading, key: list[str], split: Split, filesystem: Any, recorder: Recorder
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
        """The values of these keys."""
        if self.values is None:
            return pa.nulls(len(keys), kind)
        places = self.places[keys]
        found = self.values.take(pa.array(places, mask=places < 0))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
