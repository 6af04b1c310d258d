"""The table at one version: its few facts as objects, its many files as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.index import ColumnStatsIndex, FileMask
from indextables.core.stats.values import wire_type
from indextables.core.types import FieldPath, StructType, leaves, resolve
from indextables.display import html_facts, human_bytes, human_moment
from indextables.errors import UnknownColumnError
from indextables.log.state.parse import Rows
from indextables.log.state.rows import Split
from indextables.log.state.segments import Segment, Shape, conform
from indextables.log.wire.actions import Metadata, Protocol, Txn, Unknown
from indextables.log.wire.indextables4spark import check_parquet

# A snapshot's statistics for the pruner, which asks for one column at a time.

_BOUNDS: Final = {"min": "minValues", "max": "maxValues"}
_COUNTS: Final = {"null": "nullCount", "nan": "nanCount"}
_PATHS: Final = pa.list_(pa.list_(pa.string()))
_SEPARATOR: Final = "\x00"


class SnapshotStats:
    """The statistics of all live files in the snapshot's order, as a `core.stats.columns.StatsSource`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def num_rows(self) -> int:
        """Returns the number of live files."""
        return self._snapshot.num_files

    @property
    def schema(self) -> StructType:
        """Returns the table's schema, by which every bound is decoded."""
        return self._snapshot.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Returns the columns that have one known value in each file."""
        return self._snapshot.partition_columns

    def num_records(self) -> pa.ChunkedArray:
        """Returns the number of rows in each file."""
        found = self._snapshot.statistic(("numRecords",), pa.int64())
        return pa.nulls(self.num_rows, pa.int64()) if found is None else found

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> pa.ChunkedArray | None:
        """Returns the stored bounds of a leaf in their wire type."""
        _, dtype = resolve(self.schema, path, case_sensitive=True)
        return self._snapshot.statistic((_BOUNDS[which], *path), wire_type(dtype))

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> pa.ChunkedArray | None:
        """Returns the number of rows in each file where a leaf is NULL, or NaN."""
        return self._snapshot.statistic((_COUNTS[which], *path), pa.int64())

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:
        """Returns True for each file in which the stored bound need not occur."""
        return self._listing(("inexact", which), path)

    def dropped(self, path: FieldPath) -> FileMask | None:
        """Returns True for each file whose bound was left out because it was too long; only for reports."""
        return self._listing(("dropped",), path)

    def partition_value(self, name: str) -> pa.ChunkedArray:
        """Returns the values of a partition column as text; null is NULL."""
        return pc.struct_field(self._snapshot.column("partition_values"), [name])

    def absent(self, path: FieldPath) -> FileMask | None:
        """Returns True for each file that was written before the column was added."""
        ids = self._snapshot.column("schema_id")
        known = {
            value: self._snapshot.metadata.schema_of(value) for value in pc.unique(ids).to_pylist()
        }
        lacking = [i for i, schema in known.items() if schema is not None and not _has(schema, path)]
        if not lacking:
            return None
        return np.asarray(pc.is_in(ids, pa.array(lacking, pa.int64())))

    def _listing(self, field: tuple[str, ...], path: FieldPath) -> FileMask | None:
        """Returns True for each file whose list of paths in this field contains this path."""
        lists = self._snapshot.statistic(field, _PATHS)
        if lists is None or lists.null_count == len(lists):
            return None
        array = lists.combine_chunks()
        inner = array.flatten()
        # A name that contains the separator can mark too many files, which is safe: those bounds are not trusted.
        same = pc.and_(
            pc.equal(pc.binary_join(inner, _SEPARATOR), _SEPARATOR.join(path)),
            pc.equal(pc.list_value_length(inner), len(path)),
        )
        mask = np.zeros(len(array), np.bool_)
        mask[pc.list_parent_indices(array).filter(same).to_numpy()] = True
        return mask


@lru_cache(maxsize=1024)
def _has(schema: StructType, path: FieldPath) -> bool:
    try:
        resolve(schema, path, case_sensitive=True)
    except UnknownColumnError:
        return False
    return any(leaf.path[: len(path)] == path for leaf in leaves(schema))


# Which files are live: the last action on each key decides, and all keys are decided at once.

_MANY: Final = 32
"""The most segments of a snapshot; with more of them, small ones are merged."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Adds under one schema, and the shape that follows from it."""

    rows: Rows
    shape: Shape


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a table: live ones in segments, removed ones as tombstones."""

    segments: tuple[Segment, ...]
    tombstones: pa.Table


def reconcile(base: Files, adds: Sequence[Typed], removes: Rows) -> Files:
    """Returns the files after these actions.

    The cost grows with the number of actions; the keys of the base are scanned once.
    """
    columns = [*(typed.rows.table.column("key") for typed in adds), removes.table.column("key")]
    chunks = [chunk for column in columns for chunk in column.chunks if len(chunk)]
    if not chunks:
        return base
    encoded = (chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)).dictionary_encode()
    if len(encoded.dictionary) == len(encoded):  # every key occurs once, as in nearly every commit
        wins = np.ones(len(encoded), np.bool_)
    else:
        order = np.concatenate([*(typed.rows.order for typed in adds), removes.order])
        wins = _last_of_each(encoded.indices.to_numpy(), len(encoded.dictionary), order)
    segments = [segment.bury(segment.contains(encoded.dictionary)) for segment in base.segments]
    start = 0
    for typed in adds:
        end = start + len(typed.rows.order)
        segments.append(_segment(typed, wins[start:end]))
        start = end
    live = [segment for segment in segments if segment.num_live]
    tombstones = _tombstones(base.tombstones, encoded.dictionary, removes.table, wins[start:])
    return Files(tuple(_merged(live)), tombstones)


def _tombstones(
    base: pa.Table, keys: pa.Array, removed: pa.Table, wins: npt.NDArray[np.bool_]
) -> pa.Table:
    """Returns the removed files: those of the base that no action names, and those whose last action removes them."""
    kept = base.filter(pc.invert(pc.is_in(base.column("key"), keys))) if base.num_rows else base
    return pa.concat_tables([kept, removed.filter(pa.array(wins))]) if removed.num_rows else kept


def _merged(segments: list[Segment]) -> list[Segment]:
    """Returns the same rows in fewer segments if there are too many; large segments are not copied."""
    if len(segments) <= _MANY:
        return segments
    large = sum(segment.num_live for segment in segments) // 4
    merged: list[Segment] = []
    for segment in segments:
        if (
            merged
            and merged[-1].shape == segment.shape
            and merged[-1].num_live + segment.num_live <= large
        ):
            merged[-1] = merged[-1].joined(segment)
        else:
            merged.append(segment)
    return merged


def _last_of_each(
    codes: npt.NDArray[np.int32], distinct: int, order: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Returns True for the row of each code with the highest order."""
    last = np.full(distinct, -1, np.int64)
    np.maximum.at(last, codes, order)
    wins: npt.NDArray[np.bool_] = order == last[codes]
    return wins


def _segment(typed: Typed, wins: npt.NDArray[np.bool_]) -> Segment:
    segment = Segment.alive(typed.rows.table, typed.shape)
    return segment if wins.all() else segment.bury(~wins).without_many_dead()


@dataclass(frozen=True)
class Snapshot:
    """What a reader of this version sees; it never changes, so what is derived from it is cached.

    All arrays and masks over files are in the same order: by `seq`, then by key.
    """

    version: int
    timestamp_ms: int | None
    commit_id: str | None
    protocol: Protocol
    metadata: Metadata
    txns: Mapping[str, Txn] = field(repr=False)
    min_read_version: int = field(repr=False)
    unknown: tuple[Unknown, ...] = field(repr=False)
    state: Files = field(repr=False)
    table_uri: str
    excerpt: str = field(default="", repr=False)
    """Identifies a `subset` of the version; empty for the version itself."""

    @property
    def schema(self) -> StructType:
        """Returns the table's columns, including partition columns."""
        return self.metadata.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Returns the columns that have one value in each split."""
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        """Returns the settings that are stored with the table."""
        return self.metadata.properties

    def check_parquet(self) -> None:
        """Raises NotATableError if rows cannot be read or written here, because the splits are not Parquet files."""
        if "format" in self.metadata.extra:  # tables written here have none
            check_parquet(self.metadata, self.table_uri)

    @cached_property
    def num_files(self) -> int:
        """Returns the number of live files, including delta files."""
        return sum(segment.num_live for segment in self.state.segments)

    @cached_property
    def total_bytes(self) -> int:
        """Returns the size of all live files together."""
        return pc.sum(self.column("size")).as_py() or 0

    @cached_property
    def next_seq(self) -> int:
        """Returns the `seq` for adds of the next commit: its version, unless a file has a higher number.

        A repaired log starts again at version 0 and keeps the numbers of its files, and files that are
        written later must still have higher ones.
        """
        highest = [pc.max(segment.table.column("seq")).as_py() for segment in self.state.segments]
        known: list[int] = [seq for seq in highest if seq is not None]
        return max([self.version, *known]) + 1

    @property
    def tombstones(self) -> pa.Table:
        """Returns the removed files as a table with the columns `segments.TOMBSTONES`."""
        return self.state.tombstones

    def __repr__(self) -> str:
        return f"Snapshot({self.table_uri!r}, version={self.version}, files={self.num_files})"

    def _repr_html_(self) -> str:
        facts = {
            "version": f"{self.version:,}",
            "committed": human_moment(self.timestamp_ms),
            "files": f"{self.num_files:,}, {human_bytes(self.total_bytes)}",
            "partitioned by": ", ".join(self.partition_columns) or None,
        }
        return html_facts(self.table_uri, facts) + self.schema._repr_html_()

    def files(self) -> pa.Table:
        """Returns every live file as a row of an Arrow table; `segments.FIELDS` lists the columns."""
        return self._files

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns one column of `files()` without building the others."""
        kind = self._shape.columns().field(name).type
        return self.ordered([conform(s.column(name), kind) for s in self.state.segments], kind)

    def statistic(self, path: tuple[str, ...], kind: pa.DataType) -> pa.ChunkedArray | None:
        """Returns one field of the statistics, such as ("minValues", "a"); None if no file has it."""
        found = [(s, s.statistic(path)) for s in self.state.segments]
        if all(column is None for _, column in found):
            return None
        columns = [
            pa.nulls(s.num_live, kind) if column is None else conform(column, kind)
            for s, column in found
        ]
        return self.ordered(columns, kind)

    def stats_source(self) -> SnapshotStats:
        """Returns the statistics of all live files, for the pruner."""
        return SnapshotStats(self)

    def index(self) -> ColumnStatsIndex:
        """Returns the decoded statistics; a column that one plan has decoded is there for the next one."""
        return self._index

    def splits(self, mask: npt.NDArray[np.bool_] | None = None) -> list[Split]:
        """Returns the files where the mask is set (without one: all) as objects, in the snapshot's order."""
        rows = self.files() if mask is None else self._rows(np.flatnonzero(mask))
        return [Split.of(row, self.schema) for row in rows.to_pylist()]

    def keys_among(self, keys: Iterable[str]) -> frozenset[str]:
        """Returns those keys that name live files."""
        wanted = pa.array(sorted(keys), pa.string())
        found: set[str] = set()
        for segment in self.state.segments:
            mask = segment.contains(wanted) & ~segment.dead
            if mask.any():
                found.update(segment.table.column("key").filter(pa.array(mask)).to_pylist())
        return frozenset(found)

    def split(self, key: str) -> Split | None:
        """Returns the live file with this key; None if there is none."""
        found = self.splits(np.asarray(pc.equal(self.column("key"), key)))
        return found[0] if found else None

    def subset(self, mask: npt.NDArray[np.bool_]) -> Snapshot:
        """Returns this version with only the files where the mask is set; no column is copied."""
        kept = mask if self._order is None else np.zeros_like(mask)
        if self._order is not None:
            kept[self._order.to_numpy()] = mask
        segments, start = [], 0
        for segment in self.state.segments:
            end = start + segment.num_live
            left_out = np.zeros(len(segment.dead), np.bool_)
            left_out[~segment.dead] = ~kept[start:end]
            segments.append(segment.bury(left_out))
            start = end
        chosen = blake2b(self.excerpt.encode() + np.packbits(mask).tobytes(), digest_size=16)
        state = replace(self.state, segments=tuple(segments))
        return replace(self, state=state, excerpt=chosen.hexdigest())

    def unsliced(self) -> Snapshot:
        """Returns this version with every file as a slice of its own, without `fileGroup`, kind and block."""
        rows = self.files()
        for name in ("file_group", "kind", "block"):
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.string()))
        return replace(self, state=replace(self.state, segments=(Segment.alive(rows, self._shape),)))

    @cached_property
    def groups(self) -> frozenset[str]:
        """Returns the slices of the table by their `fileGroup`."""
        return frozenset(pc.unique(self.column("file_group").drop_null()).to_pylist())

    def groups_of(self, keys: frozenset[str]) -> frozenset[str]:
        """Returns the slices that have the files with these keys, by their `fileGroup`."""
        chosen = pc.is_in(self.column("key"), pa.array(sorted(keys), pa.string()))
        return frozenset(self.column("file_group").filter(chosen).drop_null().to_pylist())

    def ordered(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], kind: pa.DataType
    ) -> pa.ChunkedArray:
        """Returns the live rows of all segments, given a column for each, in the snapshot's order."""
        chunks = [c for column in columns for c in getattr(column, "chunks", [column])]
        column = pa.chunked_array(chunks, kind)
        return column if self._order is None else column.take(self._order)

    def _rows(self, chosen: npt.NDArray[np.int64]) -> pa.Table:
        """Returns the rows of `files()` with these ascending numbers, without building the others."""
        at = chosen if self._order is None else self._order.to_numpy()[chosen]
        ascending = np.sort(at)
        columns, start, tables = self._shape.columns(), 0, [self._shape.columns().empty_table()]
        for segment in self.state.segments:
            end = start + segment.num_live
            low, high = np.searchsorted(ascending, [start, end])
            if low < high:
                taken = segment.take(ascending[low:high] - start)
                arrays = [conform(_column(taken, field), field.type) for field in columns]
                tables.append(pa.table(arrays, schema=columns))
            start = end
        rows = tables[-1] if len(tables) < 3 else pa.concat_tables(tables)
        return rows if self._order is None else rows.take(np.searchsorted(ascending, at))

    @cached_property
    def _index(self) -> ColumnStatsIndex:
        return ColumnStatsIndex(self.stats_source())

    @cached_property
    def _shape(self) -> Shape:
        return Shape.of(self.metadata)

    @cached_property
    def _files(self) -> pa.Table:
        columns = self._shape.columns()
        return pa.table([self.column(name) for name in columns.names], schema=columns)

    @cached_property
    def _order(self) -> pa.Array | None:
        """Returns the numbers of all live rows in order of seq and key; None if they are in that order already."""
        segments = self.state.segments
        if _are_apart(segments) and all(segment.is_sorted for segment in segments):
            return None
        rows = pa.table(
            {
                name: pa.chunked_array([c for s in segments for c in s.column(name).chunks], kind)
                for name, kind in (("seq", pa.int64()), ("key", pa.string()))
            }
        )
        return pc.sort_indices(rows, [("seq", "ascending"), ("key", "ascending")])


def _column(table: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    known = field.name in table.schema.names
    return table.column(field.name) if known else pa.nulls(table.num_rows, field.type)


def _are_apart(segments: Sequence[Segment]) -> bool:
    """Returns True if each segment has higher sequence numbers than the one before."""
    ranges = [pc.min_max(segment.column("seq")).as_py() for segment in segments if segment.num_live]
    return all(low["max"] < high["min"] for low, high in pairwise(ranges))
