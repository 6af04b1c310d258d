"""Slices into base files in this process: the rows each shows, written anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indextables.parquet.read.read import ReadRequest, Unit, read_batches
from indextables.parquet.write.write import WriteTarget, Written, write_splits
from indextables.plan.merge_rule import MergeMode, Piece
from indextables.storage.base import LogStore


def compact_slices(store: LogStore, pieces: Sequence[Piece], target: WriteTarget) -> Iterator[Written]:
    """Yields the rows each slice shows as new files, one slice at a time.

    Of a slice without any, none.
    """
    request = ReadRequest(store, target.schema, target.schema.names)
    for piece in pieces:
        yield write_splits(read_batches(request, _units(piece)), store, target)


def _units(piece: Piece) -> Sequence[Unit]:
    """Returns how the slice is read; where no log can hide a row, its files are read as they are."""
    if not piece.files:
        return ()
    oldest = min(split.seq for split in piece.files)
    if piece.mode is MergeMode.RECORD and all(log.seq <= oldest for log in piece.logs):
        return piece.files
    return (piece,)
