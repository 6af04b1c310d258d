"""Writes rows as splits, with bounded memory, Hive-style directories and exact statistics; commits nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.partitions import group_rows, partition_directory, partition_text
from indextables.core.stats import SplitStats, collect_stats
from indextables.core.stats.collect import merge_stats
from indextables.core.stats.truncate import (
    TruncationMetrics,
    TruncationOptions,
    log_truncation,
    truncate_stats,
)
from indextables.core.stats.wire import Physical
from indextables.core.types import FieldPath, StructType
from indextables.errors import SchemaMismatchError
from indextables.log.wire.actions import Add
from indextables.parquet.read.read import Home
from indextables.parquet.write.split_writer import ParquetSplit, float_fields, nan_columns
from indextables.plan.column_sets import TAG
from indextables.storage.base import LogStore

ROW_GROUP_BYTES: Final = 64 << 20
ROW_GROUP_ROWS: Final = 1 << 20
MEMORY_BYTES: Final = 256 << 20
"""Bytes of all rows that wait for their row group, over all partitions."""
OPEN_FILES: Final = 100
_NUMBER: Final = ""  # no column of a table has this name


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where the new splits of a table are written, and how."""

    schema: StructType
    partition_columns: tuple[str, ...]
    schema_id: int
    directory: str
    stats_columns: tuple[FieldPath, ...]
    truncation: TruncationOptions
    split_bytes: int

    @property
    def file_schema(self) -> StructType:
        """Returns the columns in the files; partition columns are only in the directory and in the log."""
        return StructType(tuple(f for f in self.schema if f.name not in self.partition_columns))

    def elsewhere(self) -> WriteTarget:
        """Returns the same target with a directory that nobody has written to, for the same version."""
        version = self.directory.rpartition("/")[2].partition("-")[0]
        return replace(self, directory=f"data/{version}-{uuid4()}")


@dataclass(frozen=True, slots=True)
class Written:
    """New splits that no commit names yet, and metrics for the commit that will."""

    adds: tuple[Add, ...] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, adds: Sequence[Add], truncation: TruncationMetrics) -> Written:
        """Returns these splits with their metrics, including what truncation did to their statistics."""
        metrics = {
            "numAddedFiles": len(adds),
            "numOutputRows": sum(add.stats.num_records or 0 for add in adds if add.stats),
            "numOutputBytes": sum(add.size or 0 for add in adds),
            "numTruncatedColumns": truncation.columns,
            "truncationBytesSaved": truncation.bytes_saved,
        }
        return cls(tuple(adds), metrics)

    @classmethod
    def nothing(cls) -> Written:
        """Returns no splits, counted."""
        return cls.of((), TruncationMetrics())

    @property
    def groups(self) -> frozenset[str]:
        """Returns the slices that get one of these files."""
        return frozenset(add.file_group for add in self.adds if add.file_group is not None)

    def __add__(self, other: Written) -> Written:
        """Returns the splits of both, and their numbers together."""
        names = {**self.metrics, **other.metrics}
        metrics = {name: self.metrics.get(name, 0) + other.metrics.get(name, 0) for name in names}
        return Written((*self.adds, *other.adds), metrics)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The rows of a split for which a condition is not TRUE, as new splits; without adds there are none."""

    written: Written
    removed_rows: int


def write_splits(batches: Iterable[pa.RecordBatch], store: LogStore, target: WriteTarget) -> Written:
    """Writes every row into exactly one split, durable on return; after an error, what was written is deleted.

    The batches have the table's schema (see `parquet.write.conform`). Without rows no split is written.
    """
    writer = _Writer(store, target)
    try:
        for batch in batches:
            for piece in _pieces(batch, writer.row_group_bytes):
                writer.add(piece)
        written = writer.finish()
        store.sync_files([add.path for add in written.adds])
    except BaseException:
        writer.abandon()
        raise
    return written


@dataclass(slots=True)
class _Partition:
    """The rows of one partition that wait for their row group, and the file that is open for them."""

    values: dict[str, str | None]
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0
    rows: int = 0
    split: ParquetSplit | None = None
    stats: list[SplitStats] = field(default_factory=list)
    nan: frozenset[FieldPath] = frozenset()


class _Writer:
    """Distributes rows to partitions and closes files that have reached their size."""

    def __init__(self, store: LogStore, target: WriteTarget) -> None:
        self._store, self._target = store, target
        self._filesystem = store.filesystem()
        self._schema = target.file_schema
        self._floats = float_fields(self._schema)
        self.row_group_bytes = min(ROW_GROUP_BYTES, target.split_bytes)
        self._partitions: dict[tuple[str | None, ...], _Partition] = {}  # least recently used first
        self._keys: list[str] = []
        self._adds: list[Add] = []
        self._truncation = TruncationMetrics()

    def add(self, batch: pa.RecordBatch) -> None:
        for values, rows in group_rows(batch, self._target.partition_columns):
            partition = self._partition(values)
            partition.waiting.append(rows)
            partition.bytes += rows.nbytes
            partition.rows += rows.num_rows
            if partition.bytes >= self.row_group_bytes or partition.rows >= ROW_GROUP_ROWS:
                self._write_row_group(partition)
        while sum(p.bytes for p in self._partitions.values()) > MEMORY_BYTES:
            self._write_row_group(max(self._partitions.values(), key=lambda p: p.bytes))

    def finish(self) -> Written:
        for partition in self._partitions.values():
            self._write_row_group(partition)
            self._close(partition)
        log_truncation(self._truncation)
        return Written.of(self._adds, self._truncation)

    def abandon(self) -> None:
        """Deletes what was written as far as possible; vacuum finds the rest."""
        for partition in self._partitions.values():
            if partition.split is not None:
                with suppress(Exception):
                    partition.split.abandon()
        for key in self._keys:
            with suppress(Exception):
                self._store.delete(key)

    def _partition(self, values: Sequence[pa.Scalar]) -> _Partition:
        texts = {
            name: _partition_text(name, value, self._target.schema)
            for name, value in zip(self._target.partition_columns, values, strict=True)
        }
        key = tuple(texts.values())
        partition = self._partitions.pop(key, None) or _Partition(texts)
        self._partitions[key] = partition
        return partition

    def _write_row_group(self, partition: _Partition) -> None:
        if not partition.rows:
            return
        rows = pa.Table.from_batches(partition.waiting)
        partition.waiting, partition.bytes, partition.rows = [], 0, 0
        found = nan_columns(rows, self._floats)
        if partition.split is not None and not found <= partition.split.nan_columns:
            # The open file has statistics of a column that now has a NaN. A column that once had a NaN
            # stays without statistics, so this happens at most once for each float column.
            self._close(partition)
        partition.nan |= found
        if partition.split is None:
            partition.split = self._open(partition)
        partition.split.write(rows)
        partition.stats.append(collect_stats(rows, self._schema, self._target.stats_columns))
        if partition.split.size >= self._target.split_bytes:
            self._close(partition)

    def _open(self, partition: _Partition) -> ParquetSplit:
        open_now = [p for p in self._partitions.values() if p.split is not None]
        if len(open_now) >= OPEN_FILES:
            self._close(open_now[0])
        directory = f"{self._target.directory}/{partition_directory(partition.values)}"
        key = f"{directory}part-{len(self._keys):05d}-{uuid4()}.parquet"
        self._keys.append(key)
        return ParquetSplit(self._filesystem, key, self._schema, partition.nan)

    def _close(self, partition: _Partition) -> None:
        if partition.split is None:
            return
        file, partition.split = partition.split.close(), None
        stats, metrics = truncate_stats(
            merge_stats(partition.stats),
            self._schema,
            self._target.truncation,
            self._target.partition_columns,
        )
        partition.stats = []
        self._truncation += metrics
        self._adds.append(
            Add(
                path=file.key,
                size=file.size,
                partition_values=dict(partition.values),
                modification_time=file.modification_time,
                stats=stats,
                schema_id=self._target.schema_id,
            )
        )


def partition_texts(
    rows: pa.Table, columns: Sequence[str], schema: StructType
) -> Iterator[tuple[tuple[str | None, ...], npt.NDArray[np.int64]]]:
    """Yields partition values as the log spells them, with the numbers of rows that have them.

    Each row is in exactly one of the pairs, but the same values may come more than once.
    """
    if not columns or not rows.num_rows:
        yield (), np.arange(rows.num_rows)
        return
    numbered = rows.select(list(columns)).append_column(_NUMBER, pa.array(np.arange(rows.num_rows)))
    for batch in numbered.to_batches():
        for values, found in group_rows(batch, columns):
            texts = (_partition_text(n, v, schema) for n, v in zip(columns, values, strict=True))
            yield tuple(texts), found.column(0).to_numpy()


def _pieces(batch: pa.RecordBatch, row_group_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yields pieces of the batch that fit a row group, so that a huge batch can become several splits."""
    count = max(-(-batch.nbytes // row_group_bytes), -(-batch.num_rows // ROW_GROUP_ROWS), 1)
    step = max(-(-batch.num_rows // count), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _partition_text(name: str, value: pa.Scalar, schema: StructType) -> str | None:
    column = next(f for f in schema if f.name == name)
    try:
        text = partition_text(_physical(value), column.type)
    except UnicodeDecodeError as error:
        raise SchemaMismatchError(
            f"partition column {name!r} contains {error.object!r}, which is not UTF-8 text",
            hint="decode these values, or make the column binary and partition by another one",
            column=name,
        ) from error
    if text is None and not column.nullable:
        raise SchemaMismatchError(
            f"partition column {name!r} contains NULL or '', but is NOT NULL in the table",
            hint="fill or filter these rows before writing; '' is stored as NULL, as Spark does",
            column=name,
        )
    return text


def _physical(value: pa.Scalar) -> Physical | None:
    # as_py() raises for a year outside 1-9999
    found: Physical | None = value.value if pa.types.is_temporal(value.type) else value.as_py()
    return found


# What a change by key does, and its delta files: rows that replace older ones, and keys of rows that are gone.


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows that a change by key replaces, removes and adds, as they were found in one version of a table."""

    found: Any
    """What the engine that found them needs in order to write them."""
    updated: int = 0
    """Rows that are replaced, in their slice or elsewhere."""
    moved: int = 0
    """Those of them that leave their slice: their key or their partition changes."""
    deleted: int = 0
    inserted: int = 0
    inserted_keys: Predicate | None = None
    """A condition on the keys that get a row in a new slice; None: no key does."""
    emptied: tuple[str, ...] = ()
    """Files that go as a whole, because every row in them is deleted."""

    @property
    def metrics(self) -> dict[str, int]:
        """Returns the numbers for the commit."""
        return {
            "numOutputRows": self.updated + self.inserted,
            "numUpdatedRows": self.updated,
            "numDeletedRows": self.deleted,
            "numInsertedRows": self.inserted,
            "numMovedRows": self.moved,
        }


def write_log(
    store: LogStore,
    target: WriteTarget,
    home: Home,
    rows: pa.Table,
    *,
    block: Literal["data", "delete"],
    columns: Sequence[str] | None = None,
) -> Written:
    """Writes these rows as delta files of one slice, with statistics of their own; durable on return.

    `columns` are those that a partial data delta file sets; None: all of them. Delta files have no partition
    columns, because all rows of a slice are in one partition.
    """
    stored = [name for name in rows.column_names if name not in target.partition_columns]
    fields = {field.name: field for field in target.schema}
    directory = f"{target.directory}/{partition_directory(home.partition_values)}".rstrip("/")
    narrow = replace(
        target,
        schema=StructType(tuple(fields[name] for name in stored)),
        partition_columns=(),
        directory=directory,
        stats_columns=tuple(path for path in target.stats_columns if path[0] in stored),
    )
    written = write_splits(rows.select(stored).to_batches(), store, narrow)
    more: dict[str, Any] = {} if columns is None else {"tags": {TAG: json.dumps(list(columns))}}
    adds = tuple(
        replace(
            add,
            partition_values=dict(home.partition_values),
            file_group=home.group,
            kind="log",
            block=block,
            **more,
        )
        for add in written.adds
    )
    return replace(written, adds=adds)


def as_new_groups(written: Written) -> Written:
    """Returns each of these splits as the base file of a new slice."""
    adds = tuple(replace(add, file_group=str(uuid4()), kind="base") for add in written.adds)
    return replace(written, adds=adds)
