"""Writes the rows that slices show as new base files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indextables.parquet.read.read import ReadRequest, Unit, read_batches
from indextables.parquet.write.write import WriteTarget, Written, write_splits
from indextables.plan.merge_rule import MergeMode, Piece
from indextables.storage.base import LogStore


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
