"""The table at one version: few facts as objects, all files as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.index import ColumnStatsIndex, FileMask
from indextables.core.stats.values import wire_type
from indextables.core.types import FieldPath, StructType, leaves, resolve
from indextables.errors import UnknownColumnError
from indextables.log.state.parse import Rows
from indextables.log.state.rows import Split
from indextables.log.state.segments import Segment, Shape, conform
from indextables.log.wire.actions import Metadata, Protocol, Txn, Unknown

# A snapshot's statistics for the pruner, column by column as they are asked for.

_BOUNDS: Final = {"min": "minValues", "max": "maxValues"}
_COUNTS: Final = {"null": "nullCount", "nan": "nanCount"}
_PATHS: Final = pa.list_(pa.list_(pa.string()))
_SEPARATOR: Final = "\x00"


class SnapshotStats:
    """Answers `core.source.StatsSource` for all live files, in the snapshot's order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def num_rows(self) -> int:
        """Returns the number of live files."""
        return self._snapshot.num_files

    @property
    def schema(self) -> StructType:
        """Returns the table's schema, by which every value is decoded."""
        return self._snapshot.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Returns columns whose value is one per file and known."""
        return self._snapshot.partition_columns

    def num_records(self) -> Any:
        """Returns rows per file."""
        found = self._snapshot.statistic(("numRecords",), pa.int64())
        return pa.nulls(self.num_rows, pa.int64()) if found is None else found

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> Any | None:
        """Returns the stored bound of a leaf in its wire type."""
        _, dtype = resolve(self.schema, path, case_sensitive=True)
        return self._snapshot.statistic((_BOUNDS[which], *path), wire_type(dtype))

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> Any | None:
        """Returns how many rows are NULL, or NaN."""
        return self._snapshot.statistic((_COUNTS[which], *path), pa.int64())

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:
        """Returns True where the stored bound is only a bound."""
        return self._listing(("inexact", which), path)

    def dropped(self, path: FieldPath) -> FileMask | None:
        """Returns True where a bound was left out for its length; only for reports."""
        return self._listing(("dropped",), path)

    def partition_value(self, name: str) -> Any:
        """Returns the value of a partition column as text; null is NULL."""
        return pc.struct_field(self._snapshot.column("partition_values"), [name])

    def absent(self, path: FieldPath) -> FileMask | None:
        """Returns True where the column is newer than the file's schema."""
        ids = self._snapshot.column("schema_id")
        known = {
            value: self._snapshot.metadata.schema_of(value) for value in pc.unique(ids).to_pylist()
        }
        lacking = [i for i, schema in known.items() if schema is not None and not _has(schema, path)]
        if not lacking:
            return None
        return np.asarray(pc.is_in(ids, pa.array(lacking, pa.int64())))

    def _listing(self, part: tuple[str, ...], path: FieldPath) -> FileMask | None:
        """Returns True for each file whose list of paths holds this path."""
        lists = self._snapshot.statistic(part, _PATHS)
        if lists is None or lists.null_count == len(lists):
            return None
        array = lists.combine_chunks()
        inner = array.flatten()
        # A name with the separator in it can only mark too many: a bound is doubted, never trusted.
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


# Which files are live: for every key the last action on it decides, for all keys at once.

_MANY: Final = 32
"""Segments of a snapshot before small ones are merged."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Adds that were typed by one schema."""

    rows: Rows
    shape: Shape


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a table: live ones in segments, removed ones as tombstones."""

    segments: tuple[Segment, ...]
    tombstones: Any


def reconcile(base: Files, adds: Sequence[Typed], removes: Rows) -> Files:
    """Returns the files after these actions.

    The cost follows the actions, plus one scan of the base's keys.
    """
    columns = [*(typed.rows.table.column("key") for typed in adds), removes.table.column("key")]
    chunks = [chunk for column in columns for chunk in column.chunks if len(chunk)]
    if not chunks:
        return base
    encoded = (chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)).dictionary_encode()
    if len(encoded.dictionary) == len(encoded):  # each key once, as in nearly every commit
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


def _tombstones(base: Any, keys: Any, removed: Any, wins: npt.NDArray[np.bool_]) -> Any:
    """Returns those of the base that no action is about, and the removes that were the last word."""
    kept = base.filter(pc.invert(pc.is_in(base.column("key"), keys))) if base.num_rows else base
    return pa.concat_tables([kept, removed.filter(pa.array(wins))]) if removed.num_rows else kept


def _merged(segments: list[Segment]) -> list[Segment]:
    """Returns the same rows in fewer segments, once there are many; what is large is not copied."""
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
    """What a reader of this version sees; it never changes, so everything derived from it is cached.

    All arrays and masks over files are in one order: by `seq`, then by key.
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
    """Tells parts of one version apart (`part`); empty for the version itself."""

    @property
    def schema(self) -> StructType:
        """Returns the table's columns, partition columns included."""
        return self.metadata.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Returns columns whose value is one per split."""
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        """Returns the table's own settings."""
        return self.metadata.properties

    @cached_property
    def num_files(self) -> int:
        """Returns the number of live files, log files of slices included."""
        return sum(segment.num_live for segment in self.state.segments)

    @cached_property
    def total_bytes(self) -> int:
        """Returns the size of all live files together."""
        return pc.sum(self.column("size")).as_py() or 0

    @cached_property
    def next_seq(self) -> int:
        """Returns what an add of the next commit is numbered with: its version, unless a file has more.

        A repair starts again at version 0 and keeps the numbers of its files; what is written later must
        still be later.
        """
        highest = [pc.max(segment.table.column("seq")).as_py() for segment in self.state.segments]
        known: list[int] = [seq for seq in highest if seq is not None]
        return max([self.version, *known]) + 1

    @property
    def tombstones(self) -> Any:
        """Returns removed files as a table: key, deletion_timestamp, data_change, extra."""
        return self.state.tombstones

    def files(self) -> Any:
        """Returns every live file as a row of an Arrow table; see `segments.FIELDS` for the columns."""
        return self._files

    def column(self, name: str) -> Any:
        """Returns one column of `files()`, without building the others."""
        kind = self._shape.columns().field(name).type
        return self.ordered([conform(s.column(name), kind) for s in self.state.segments], kind)

    def statistic(self, path: tuple[str, ...], kind: Any) -> Any | None:
        """Returns one part of the statistics, such as ("minValues", "a"); None if no file has it."""
        parts = [(s, s.statistic(path)) for s in self.state.segments]
        if all(part is None for _, part in parts):
            return None
        columns = [
            pa.nulls(s.num_live, kind) if part is None else conform(part, kind) for s, part in parts
        ]
        return self.ordered(columns, kind)

    def stats_source(self) -> SnapshotStats:
        """Returns the statistics of all live files, for the pruner."""
        return SnapshotStats(self)

    def index(self) -> ColumnStatsIndex:
        """Returns the statistics decoded by column; what one plan decoded the next one finds."""
        return self._index

    def splits(self, mask: npt.NDArray[np.bool_] | None = None) -> list[Split]:
        """Returns the files where the mask is set (all without one) as objects, in the snapshot's order."""
        rows = self.files() if mask is None else self._rows(np.flatnonzero(mask))
        return [Split.of(row, self.schema) for row in rows.to_pylist()]

    def keys_among(self, keys: Iterable[str]) -> frozenset[str]:
        """Returns those of these keys that are live files."""
        wanted = pa.array(sorted(keys), pa.string())
        found: set[str] = set()
        for segment in self.state.segments:
            mask = segment.contains(wanted) & ~segment.dead
            if mask.any():
                found.update(segment.table.column("key").filter(pa.array(mask)).to_pylist())
        return frozenset(found)

    def split(self, key: str) -> Split | None:
        """Returns the live file under this key."""
        found = self.splits(np.asarray(pc.equal(self.column("key"), key)))
        return found[0] if found else None

    def subset(self, mask: npt.NDArray[np.bool_]) -> Snapshot:
        """Returns the same version with the files where the mask is set and no others.

        No column is copied.
        """
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
        """Returns the same files, each of which stands for itself: in no group, neither base nor log."""
        rows = self.files()
        for name in ("file_group", "kind", "block"):
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.string()))
        return replace(self, state=replace(self.state, segments=(Segment.alive(rows, self._shape),)))

    @cached_property
    def groups(self) -> frozenset[str]:
        """Returns the file groups of a table with slices."""
        return frozenset(pc.unique(self.column("file_group").drop_null()).to_pylist())

    def groups_of(self, keys: frozenset[str]) -> frozenset[str]:
        """Returns the file groups that the files under these keys belong to."""
        chosen = pc.is_in(self.column("key"), pa.array(sorted(keys), pa.string()))
        return frozenset(self.column("file_group").filter(chosen).drop_null().to_pylist())

    def ordered(self, columns: list[Any], kind: Any) -> Any:
        """Returns columns of the segments' live rows as one column in the snapshot's order."""
        chunks = [c for column in columns for c in getattr(column, "chunks", [column])]
        column = pa.chunked_array(chunks, kind)
        return column if self._order is None else column.take(self._order)

    def _rows(self, positions: npt.NDArray[np.int64]) -> Any:
        """Returns these rows of `files()`, ascending, without building the others."""
        at = positions if self._order is None else self._order.to_numpy()[positions]
        ascending = np.sort(at)
        columns, start, tables = self._shape.columns(), 0, [self._shape.columns().empty_table()]
        for segment in self.state.segments:
            end = start + segment.num_live
            low, high = np.searchsorted(ascending, [start, end])
            if low < high:
                taken = segment.take(ascending[low:high] - start)
                parts = [conform(_column(taken, field), field.type) for field in columns]
                tables.append(pa.table(parts, schema=columns))
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
    def _files(self) -> Any:
        columns = self._shape.columns()
        return pa.table([self.column(name) for name in columns.names], schema=columns)

    @cached_property
    def _order(self) -> Any | None:
        """Returns the rows of all segments in order of seq and key.

        None if they are in order already.
        """
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


def _column(table: Any, field: Any) -> Any:
    known = field.name in table.schema.names
    return table.column(field.name) if known else pa.nulls(table.num_rows, field.type)


def _are_apart(segments: Sequence[Segment]) -> bool:
    """Returns each segment has higher numbers than the one before."""
    ranges = [pc.min_max(segment.column("seq")).as_py() for segment in segments if segment.num_live]
    return all(low["max"] < high["min"] for low, high in pairwise(ranges))
