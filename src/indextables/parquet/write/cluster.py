"""Writes the rows of splits as better splits: packed into fewer, or sorted along a curve.

All rows must be sorted together. Their keys fit into memory; the rows are first distributed over temporary
files, one for each new split, so that no more than one split is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.log.state.rows import Split
from indextables.parquet.read.read import ReadRequest, read_batches
from indextables.parquet.write.curves import Curve, Ranker
from indextables.parquet.write.write import WriteTarget, Written, write_splits
from indextables.storage.base import LogStore

_WHOLE: Final = 1 << 62


def pack(store: LogStore, splits: Sequence[Split], target: WriteTarget) -> Written:
    """Writes the rows of these splits, in their order, as no more splits than their size needs."""
    request = ReadRequest(store, target.schema, target.schema.names)
    return write_splits(read_batches(request, splits), store, target)


def lay_out(
    store: LogStore,
    splits: Sequence[Split],
    target: WriteTarget,
    columns: Sequence[str],
    curve: Curve,
) -> Written:
    """Writes the rows of these splits, sorted along a curve through some columns, as splits of the target's size."""
    keys = _keys(store, splits, target, columns, curve)
    count = max(1, -(-sum(split.size for split in splits) // target.split_bytes))
    order = np.argsort(keys, kind="stable")
    split_of_row = np.empty(len(keys), np.int64)
    for number, rows in enumerate(np.array_split(order, count)):
        split_of_row[rows] = number
    request = ReadRequest(store, target.schema, target.schema.names)
    whole = replace(target, split_bytes=_WHOLE)
    with TemporaryDirectory(prefix="indextables-") as directory:
        _distribute(read_batches(request, splits), split_of_row, keys, Path(directory))
        batches = (_sorted(Path(directory) / f"{number}.arrow") for number in range(count))
        written = [write_splits(rows, store, whole) for rows in batches]
    adds = tuple(add for one in written for add in one.adds)
    names = {name for one in written for name in one.metrics}
    return Written(adds, {name: sum(one.metrics[name] for one in written) for name in names})


def _keys(
    store: LogStore,
    splits: Sequence[Split],
    target: WriteTarget,
    columns: Sequence[str],
    curve: Curve,
) -> npt.NDArray[np.int64]:
    request = ReadRequest(store, target.schema, tuple(columns))
    table = pa.Table.from_batches(read_batches(request, splits), schema=request.result_schema)
    found = [table.column(name).combine_chunks() for name in columns]
    return Ranker.of(found).keys(found, curve)


def _distribute(
    batches: Iterator[pa.RecordBatch],
    split_of_row: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    directory: Path,
) -> None:
    """Writes every row with its key to the temporary file of its new split; `keys` are in the order of the rows."""
    writers: dict[int, pa.RecordBatchFileWriter] = {}
    start = 0
    try:
        for batch in batches:
            numbers = split_of_row[start : start + batch.num_rows]
            keyed = batch.append_column("", pa.array(keys[start : start + batch.num_rows]))
            start += batch.num_rows
            order = np.argsort(numbers, kind="stable")
            cuts = [0, *(np.flatnonzero(np.diff(numbers[order])) + 1).tolist(), len(order)]
            for low, high in pairwise(cuts):
                rows = keyed.take(pa.array(order[low:high]))
                number = int(numbers[order[low]])
                if number not in writers:
                    path = str(directory / f"{number}.arrow")
                    writers[number] = pa.ipc.new_file(path, rows.schema)
                writers[number].write(rows)
    finally:
        for writer in writers.values():
            writer.close()


def _sorted(path: Path) -> Iterator[pa.RecordBatch]:
    if not path.exists():
        return
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
        order = np.argsort(np.asarray(table.column("")), kind="stable")
        rows = table.drop_columns([""]).take(pa.array(order))
        yield from rows.to_batches(max_chunksize=1 << 16)
