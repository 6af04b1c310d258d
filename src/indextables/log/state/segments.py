"""Live splits as Arrow columns: rows that never change, with a bit for each row that is removed."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from indextables.core.stats import stats_wire_type
from indextables.core.types import StructType
from indextables.errors import LogCorruptedError, ObjectNotFoundError, StorageError
from indextables.log.wire.actions import Metadata
from indextables.log.wire.files import LogNames
from indextables.log.wire.lines import LinePosition
from indextables.storage.base import LogStore

# Columns in another type, because the schema changed or because Parquet cannot store their type.


def conform(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Returns the values in the type that they have under a newer schema; null where that is not possible.

    The bound of an integer becomes text if its column is now a decimal, and a double if it is now a double.
    """
    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([conform(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_struct(column.type) and pa.types.is_struct(kind):
        return _conform_struct(column, kind)
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        near = column.cast(kind, safe=False)
        # A value that a double cannot hold was not a bound of a column that could be widened.
        same = pc.equal(near.cast(column.type, safe=False), column)
        return pc.if_else(same, near, pa.scalar(None, kind))
    try:
        return column.cast(kind)
    except pa.ArrowException:  # no such widening exists
        return pa.nulls(len(column), kind)


def _conform_struct(array: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    names = [field.name for field in array.type]
    children = dict(zip(names, array.flatten(), strict=True))
    members = [
        conform(children[field.name], field.type)
        if field.name in children
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    if not members:
        return pa.nulls(len(array), kind)
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())


def without_hollow(kind: pa.DataType) -> pa.DataType | None:
    """Returns the type without structs that have no fields; None if nothing is left."""
    if not pa.types.is_struct(kind):
        return kind
    fields = [(field.name, without_hollow(field.type)) for field in kind]
    kept = [(name, below) for name, below in fields if below is not None]
    return pa.struct(kept) if kept else None


# The Arrow type of an action's body, analysed once and not for every line.


@dataclass(frozen=True, eq=False)
class Layout:
    """An Arrow type and, if it is a struct, the types of its members."""

    kind: pa.DataType

    @cached_property
    def members(self) -> Mapping[str, Layout]:
        """Returns the members of a struct by name, in order; nothing for any other type."""
        return {f.name: Layout(f.type) for f in self.kind} if pa.types.is_struct(self.kind) else {}

    @cached_property
    def structs(self) -> Mapping[str, Layout]:
        """Returns those members that are structs themselves."""
        return {
            name: member for name, member in self.members.items() if pa.types.is_struct(member.kind)
        }

    @cached_property
    def hollow(self) -> bool:
        """Returns True for a struct without a value at any depth, which Parquet cannot store."""
        return pa.types.is_struct(self.kind) and all(member.hollow for member in self.members.values())

    @cached_property
    def has_hollow(self) -> bool:
        """Returns True if this type, or one below it, is hollow."""
        return self.hollow or any(member.has_hollow for member in self.members.values())

    def divide(self, value: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
        """Returns the members of a JSON object that the type has fields for, and all others, at any depth."""
        known: dict[str, object] = value
        odd: dict[str, object] = {}
        if not value.keys() <= self.members.keys():
            known = {name: member for name, member in value.items() if name in self.members}
            odd = {name: member for name, member in value.items() if name not in self.members}
        for name, struct in self.structs.items():
            if isinstance(member := known.get(name), dict):
                below, odd_below = struct.divide(member)
                if odd_below:
                    known, odd[name] = {**known, name: below}, odd_below
        return known, {name: odd[name] for name in value if name in odd} if odd else odd

    def columns(self, array: pa.StructArray) -> list[pa.Array]:
        """Returns the members of an array of structs; hollow ones are null, so that storing them loses nothing."""
        columns: list[pa.Array] = array.flatten()
        for at, member in enumerate(self.members.values()):
            if member.has_hollow:
                columns[at] = member.hollow_is_null(columns[at])
        return columns

    def hollow_is_null(self, column: pa.Array) -> pa.Array:
        """Returns a column of this type with null for every hollow struct."""
        if not self.has_hollow:
            return column
        if self.hollow:
            return pa.nulls(len(column), self.kind)
        if column.offset:
            return conform(conform(column, without_hollow(self.kind)), self.kind)
        # The new array shares the buffers, so that nothing is copied.
        children = [
            member.hollow_is_null(column.field(at)) for at, member in enumerate(self.members.values())
        ]
        return pa.Array.from_buffers(self.kind, len(column), column.buffers()[:1], children=children)


# The rows of a part, of which a plan reads only the columns that it needs.


@dataclass(frozen=True, slots=True)
class PartRef:
    """A part as a manifest names it."""

    name: str
    size: int
    crc32: int
    rows: int


class PartTable:
    """The rows of a part, with the methods of an Arrow table that `Segment` uses; columns are read when needed.

    Every page has its own checksum, so a few columns can be read without verifying the whole file.
    """

    def __init__(
        self, store: LogStore, names: LogNames, ref: PartRef, loaded: pa.Table | None = None
    ) -> None:
        self.ref = ref
        self._store = store
        self._key = f"{names.directory}/{ref.name}"
        self._loaded = loaded
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """Returns the number of rows, including dead ones."""
        return self.ref.rows

    @cached_property
    def schema(self) -> pa.Schema:
        """Returns the Arrow schema of the file."""
        return self._file.schema_arrow if self._loaded is None else self._loaded.schema

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns one column, which is kept because keys and sequence numbers are needed again and again."""
        if self._loaded is not None:
            return self._loaded.column(name)
        if name not in self._columns:
            # A struct without fields is not stored.
            known = name in self.schema.names
            self._columns[name] = self._read([name]).column(0) if known else _hollow(self.num_rows)
        return self._columns[name]

    def leaf(self, path: Sequence[str]) -> pa.ChunkedArray:
        """Returns one leaf of the statistics without reading the others."""
        if self._loaded is not None or "stats" in self._columns:
            return pc.struct_field(self.column("stats"), list(path))
        return pc.struct_field(self._read([".".join(["stats", *path])]).column("stats"), list(path))

    def take(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """Returns these rows (in ascending order); only the row groups that have them are read."""
        if self._loaded is not None:
            return self._loaded.take(rows)
        counts = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(counts)])
        row_group_of = np.searchsorted(starts, rows, side="right") - 1
        row_groups = np.unique(row_group_of)
        ends = np.cumsum(np.asarray(counts)[row_groups])
        skipped = starts[row_groups] - np.concatenate([[0], ends])[:-1]
        with self._opened() as file:
            # threads only cost time where there is little to read
            table = file.read_row_groups(row_groups.tolist(), use_threads=len(row_groups) > 4)
        return table.take(rows - skipped[np.searchsorted(row_groups, row_group_of)])

    def filter(self, mask: pa.Array) -> pa.Table:
        """Returns the rows where the mask is set, as a table in memory."""
        return self.whole().filter(mask)

    def set_column(
        self, index: int, name: str | pa.Field, column: pa.Array | pa.ChunkedArray
    ) -> pa.Table:
        """Returns all rows with one column replaced, as a table in memory."""
        return self.whole().set_column(index, name, column)

    def whole(self) -> pa.Table:
        """Returns all columns of all rows, as a table in memory."""
        return self._loaded if self._loaded is not None else self._read(None)

    def check(self) -> None:
        """Raises LogCorruptedError unless the part is there and has the size in its manifest."""
        try:
            size = self._store.head(self._key).size
        except ObjectNotFoundError:
            raise self._corrupted("it is missing") from None
        if size != self.ref.size:
            raise self._corrupted(f"it has {size} bytes, but its manifest says {self.ref.size}")

    def check_bytes(self) -> None:
        """Raises LogCorruptedError unless every byte is as it was written."""
        self.check()
        if zlib.crc32(self._store.get(self._key)) != self.ref.crc32:
            raise self._corrupted("its checksum is not the one in its manifest")

    @cached_property
    def _file(self) -> pq.ParquetFile:
        with self._translated():
            filesystem = self._store.filesystem()
            source = filesystem.open_input_file(self._key)
            return pq.ParquetFile(source, pre_buffer=True, page_checksum_verification=True)

    def _read(self, columns: list[str] | None) -> pa.Table:
        with self._opened() as file:
            return file.read(columns=columns)

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with self._lock, self._translated():
            yield self._file

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (StorageError, LogCorruptedError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise self._corrupted(str(error)) from error

    def _corrupted(self, reason: str) -> LogCorruptedError:
        return LinePosition(self.ref.name, 0).corrupted(
            f"a part of a checkpoint cannot be read: {reason}"
        )


def _hollow(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(rows, pa.struct([]))])


FIELDS: Final = (
    ("key", "path", pa.string()),
    ("partition_values", "partitionValues", None),
    ("size", "size", pa.int64()),
    ("modification_time", "modificationTime", pa.int64()),
    ("data_change", "dataChange", pa.bool_()),
    ("stats", "stats", None),
    ("schema_id", "schemaId", pa.int64()),
    ("seq", "seq", pa.int64()),
    ("file_group", "fileGroup", pa.string()),
    ("kind", "kind", pa.string()),
    ("block", "block", pa.string()),
)
"""(column of a segment, field of an add, type); a type that is None follows from the table's schema."""

TOMBSTONES: Final = pa.schema(
    [
        ("key", pa.string()),
        ("deletion_timestamp", pa.int64()),
        ("data_change", pa.bool_()),
        ("extra", pa.string()),
    ]
)
"""The columns of removed files; `extra` is the JSON of their unknown fields."""


@dataclass(frozen=True)
class Shape:
    """The types of the rows in a segment, which follow from the table's schema and partition columns."""

    schema: StructType
    partition_columns: tuple[str, ...]

    @classmethod
    def of(cls, metadata: Metadata) -> Shape:
        """Returns the shape of rows under this metadata; its types are made once for each schema."""
        return _shape(metadata.schema, metadata.partition_columns)

    @property
    def stats_type(self) -> pa.StructType:
        """Returns the Arrow type of a `stats` object."""
        return self._types["stats"]

    @cached_property
    def layout(self) -> Layout:
        """Returns the Arrow type of the body of an add that has no unknown fields."""
        return Layout(pa.struct([(field, self._types[column]) for column, field, _ in FIELDS]))

    def columns(self) -> pa.Schema:
        """Returns the Arrow schema of a segment; `extra` is the JSON of tags and of unknown fields."""
        return self._columns

    @cached_property
    def _columns(self) -> pa.Schema:
        return pa.schema([*self._types.items(), ("extra", pa.string())])

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        """Returns the Arrow type of each column but `extra`."""
        by_schema = {
            "partition_values": pa.struct([(name, pa.string()) for name in self.partition_columns]),
            "stats": stats_wire_type(self.schema, self.partition_columns),
        }
        return {column: by_schema.get(column, kind) for column, _, kind in FIELDS}


@lru_cache(maxsize=64)
def _shape(schema: StructType, partition_columns: tuple[str, ...]) -> Shape:
    return Shape(schema, partition_columns)


class KeyIndex:
    """Says which rows have one of some keys.

    Comparing all keys of a large segment takes longer than a whole commit, so a segment that is asked again and again
    gets the hashes of its keys, in order.
    """

    _LARGE: Final = 50_000
    _OFTEN: Final = 2

    def __init__(self) -> None:
        self._asked = 0
        self._index: tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]] | None = None

    def mask(self, column: pa.ChunkedArray, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Returns a bit for each row of `column`: its key is one of these."""
        if len(column) < self._LARGE or (index := self._kept(column)) is None:
            return np.asarray(pc.is_in(column, keys))
        wanted = _hashes(keys)
        if wanted is None:
            return np.asarray(pc.is_in(column, keys))
        hashes, rows = index
        mask = np.zeros(len(column), np.bool_)
        first, last = (np.searchsorted(hashes, wanted, side) for side in ("left", "right"))
        found = [rows[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True) if a < b]
        if found:  # another key may have the same hash
            same = np.unique(np.concatenate(found))
            mask[same] = np.asarray(pc.is_in(column.take(same), keys))
        return mask

    def _kept(
        self, column: pa.ChunkedArray
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]] | None:
        self._asked += 1
        if self._index is None and self._asked > self._OFTEN:
            found = [_hashes(chunk) for chunk in column.chunks]
            known = [chunk for chunk in found if chunk is not None]
            if len(known) < len(found):
                return None
            hashes = np.concatenate(known)
            rows = np.argsort(hashes)
            self._index = hashes[rows], rows
        return self._index


_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_WORD: Final = 8
_LONGEST: Final = 256
"""Of a longer key only the beginning and the end are hashed."""


def _hashes(keys: pa.StringArray) -> npt.NDArray[np.uint64] | None:
    """Returns a number for each text, equal texts having equal numbers; None if one is shorter than 8 bytes."""
    if not len(keys):
        return np.empty(0, np.uint64)
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    starts, sizes = ends[:-1], np.diff(ends)
    if keys.null_count or sizes.min() < _WORD:
        return None
    words: npt.NDArray[np.uint64] = np.ndarray((data.size - _WORD + 1,), "<u8", data, strides=(1,))
    last = sizes - _WORD
    found = sizes.astype(np.uint64)
    for at in range(0, min(int(sizes.max()), _LONGEST), _WORD):
        # a text is hashed by itself: words that only longer ones have do not change it
        here = slice(None) if at < sizes.min() else sizes > at
        mixed = (found[here] ^ words[starts[here] + np.minimum(at, last[here])]) * _FACTOR
        found[here] = mixed ^ (mixed >> np.uint64(29))
    found ^= words[starts + last]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows that never change; `dead` marks those of splits that are no longer in the table."""

    table: pa.Table | PartTable
    """The rows in memory, or a part whose columns are in the store."""
    dead: npt.NDArray[np.bool_]
    shape: Shape
    keys: KeyIndex = field(default_factory=KeyIndex)

    @classmethod
    def alive(cls, table: pa.Table | PartTable, shape: Shape) -> Segment:
        """Returns a segment without dead rows."""
        return cls(table, np.zeros(table.num_rows, np.bool_), shape)

    @property
    def num_live(self) -> int:
        """Returns the number of rows that are not dead."""
        return len(self.dead) - int(np.count_nonzero(self.dead))

    def bury(self, rows: npt.NDArray[np.bool_]) -> Segment:
        """Returns this segment with these rows dead as well."""
        return replace(self, dead=self.dead | rows) if rows.any() else self

    @property
    def is_sorted(self) -> bool:
        """Returns True if the rows are in order of seq and key, as those of every part are."""
        if isinstance(self.table, PartTable):
            return True
        seq = self.column("seq").to_numpy()
        keys = self.column("key").combine_chunks()
        rising = seq[:-1] < seq[1:]
        if not (rising | (seq[:-1] == seq[1:])).all():
            return False
        return bool((rising | np.asarray(pc.less(keys[:-1], keys[1:]))).all())

    def contains(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Returns a bit for each row: its key is one of these."""
        return self.keys.mask(self.table.column("key"), keys)

    def without_many_dead(self) -> Segment:
        """Returns the same live rows; they are copied if more than a fifth of all rows is dead."""
        if 5 * int(np.count_nonzero(self.dead)) <= len(self.dead):
            return self
        return Segment.alive(self.table.filter(pa.array(~self.dead)), self.shape)

    def joined(self, other: Segment) -> Segment:
        """Returns the live rows of two segments of one shape as one segment."""
        tables = [s.table.filter(pa.array(~s.dead)) for s in (self, other)]
        return Segment.alive(pa.concat_tables(tables).combine_chunks(), self.shape)

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns the live rows of one column."""
        return self._live(self.table.column(name))

    def statistic(self, path: tuple[str, ...]) -> pa.ChunkedArray | None:
        """Returns the live rows of one field of the statistics; None if this segment does not have it."""
        kind = self.table.schema.field("stats").type
        for name in path:
            index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if index < 0:
                return None
            kind = kind.field(index).type
        if isinstance(self.table, PartTable):
            return self._live(self.table.leaf(path))
        return self._live(pc.struct_field(self.table.column("stats"), list(path)))

    def take(self, live_rows: npt.NDArray[np.int64]) -> pa.Table:
        """Returns all columns of some live rows, by their ascending numbers among the live rows."""
        return self.table.take(np.flatnonzero(~self.dead)[live_rows] if self.dead.any() else live_rows)

    def _live(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column.filter(pa.array(~self.dead)) if self.dead.any() else column
