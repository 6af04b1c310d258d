"""Reads a file of the log, plain or gzip and of any size, in pieces of whole lines and in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from indextables.errors import StorageError
from indextables.log.state.parts import part_of
from indextables.log.state.segments import PartTable, Segment, conform
from indextables.log.state.snapshot import Files, Snapshot
from indextables.log.wire.files import LogFile, inflated, read_body
from indextables.log.wire.lines import LinePosition
from indextables.ops.repair.log_location import LogLocation
from indextables.ops.repair.shorten import Shortener
from indextables.storage import LogStore

AT_ONCE: Final = 16 << 20


def read_chunks(store: LogStore, file: LogFile, at_once: int = AT_ONCE) -> Iterator[bytes]:
    """Yields all of the text in order, cut only after newlines; zlib.error or EOFError if it does not unpack."""
    if file.is_state:
        yield read_body(store, file).data
        return
    held: list[bytes] = []
    for piece in inflated(_raw(store, file, at_once), at_once):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join([*held, piece[:cut]])
            held = []
        held.append(piece[cut:])
    if rest := b"".join(held):
        yield rest


def _raw(store: LogStore, file: LogFile, at_once: int) -> Iterator[bytes]:
    if file.size <= at_once:
        yield store.get(file.key)
        return
    for start in range(0, file.size, at_once):
        yield store.get_range(file.key, start, at_once)


# Checkpoints whose adds are in Parquet parts; every byte is verified, and few rows are read at a time.

_ROWS: Final = 2048


def without_parts(location: LogLocation, snapshot: Snapshot, shortener: Shortener) -> Snapshot:
    """Returns the state in memory, already shortened; LogCorruptedError if a part is not what was written."""
    segments = tuple(_in_memory(location, segment, shortener) for segment in snapshot.state.segments)
    return replace(snapshot, state=Files(segments, snapshot.state.tombstones))


def _in_memory(location: LogLocation, segment: Segment, shortener: Shortener) -> Segment:
    part = part_of(segment)
    if part is None:
        return shortener.segment(segment)
    part.check_bytes()
    tables = [shortener.segment(rows).table for rows in _batches(location, part, segment)]
    columns = segment.shape.columns()
    return Segment.alive(pa.concat_tables([columns.empty_table(), *tables]), segment.shape)


def _batches(location: LogLocation, part: PartTable, segment: Segment) -> Iterator[Segment]:
    """Yields the live rows in small batches, because a row group could be half a gigabyte of text."""
    columns = segment.shape.columns()
    key = f"{location.names.prefix}{part.ref.name}"
    start = 0
    try:
        with location.store.filesystem().open_input_file(key) as source:
            for batch in pq.ParquetFile(source).iter_batches(_ROWS):
                alive = ~segment.dead[start : start + len(batch)]
                start += len(batch)
                table = pa.table([_column(batch, field) for field in columns], schema=columns)
                yield Segment.alive(table.filter(pa.array(alive)), segment.shape)
    except StorageError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LinePosition(part.ref.name, 0).corrupted(f"not a readable part: {error}") from error
    if start != part.num_rows or len(segment.dead) != start:
        raise LinePosition(part.ref.name, 0).corrupted(
            f"it has {start} rows, its manifest says {part.num_rows}"
        )


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name in batch.schema.names:
        return conform(batch.column(field.name), field.type)
    # a struct without fields is not stored, because it says nothing
    return conform(pa.nulls(len(batch), pa.struct([])), field.type)
