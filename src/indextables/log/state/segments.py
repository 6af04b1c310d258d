"""Live splits as Arrow columns: immutable rows, and one bit per row for the dead."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

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

# Columns under another type: since the schema changed, or because a type cannot be stored.


def conform(column: Any, kind: Any) -> Any:
    """Returns the same values under the type they have since the schema changed; what has none is null.

    An integer's bound becomes text when its column became a decimal, and a double when it became one.
    """
    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([conform(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_struct(column.type) and pa.types.is_struct(kind):
        return _conform_struct(column, kind)
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        near = column.cast(kind, safe=False)
        # what a double cannot hold was never a bound of the narrower column
        same = pc.equal(near.cast(column.type, safe=False), column)
        return pc.if_else(same, near, pa.scalar(None, kind))
    try:
        return column.cast(kind)
    except pa.ArrowException:  # no such widening exists
        return pa.nulls(len(column), kind)


def _conform_struct(array: Any, kind: Any) -> Any:
    names = [field.name for field in array.type]
    children = dict(zip(names, array.flatten(), strict=True))
    parts = [
        conform(children[field.name], field.type)
        if field.name in children
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    if not parts:
        return pa.nulls(len(array), kind)
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())


def without_hollow(kind: Any) -> Any | None:
    """Returns the type without structs that have no fields; None if nothing is left."""
    if not pa.types.is_struct(kind):
        return kind
    fields = [(field.name, without_hollow(field.type)) for field in kind]
    kept = [(name, below) for name, below in fields if below is not None]
    return pa.struct(kept) if kept else None


# The Arrow type of an action's body, taken apart once so that reading does not ask for it again.


@dataclass(frozen=True, eq=False)
class Layout:
    """One type, and the types below it if it is a struct."""

    kind: Any

    @cached_property
    def parts(self) -> Mapping[str, Layout]:
        """Returns the parts of a struct by name, in order; nothing for any other type."""
        return {f.name: Layout(f.type) for f in self.kind} if pa.types.is_struct(self.kind) else {}

    @cached_property
    def structs(self) -> Mapping[str, Layout]:
        """Returns those of the parts that are structs themselves."""
        return {name: part for name, part in self.parts.items() if pa.types.is_struct(part.kind)}

    @cached_property
    def hollow(self) -> bool:
        """Returns True for a struct with no value anywhere below it: Parquet cannot store such a one."""
        return pa.types.is_struct(self.kind) and all(child.hollow for child in self.parts.values())

    @cached_property
    def patchy(self) -> bool:
        """Returns True if this is hollow, or something below it is."""
        return self.hollow or any(child.patchy for child in self.parts.values())

    def divide(self, value: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Returns (the members of an object that the type has fields for, at any depth.

        Those it has not).
        """
        known, odd = value, {}
        if not value.keys() <= self.parts.keys():
            known = {name: member for name, member in value.items() if name in self.parts}
            odd = {name: member for name, member in value.items() if name not in self.parts}
        for name, part in self.structs.items():
            if isinstance(member := known.get(name), dict):
                below, odd_below = part.divide(member)
                if odd_below:
                    known, odd[name] = {**known, name: below}, odd_below
        return known, {name: odd[name] for name in value if name in odd} if odd else odd

    def columns(self, array: Any) -> list[Any]:
        """Returns the parts of an array of structs.

        What is hollow is null, so that storing it loses nothing.
        """
        parts: list[Any] = array.flatten()
        for at, child in enumerate(self.parts.values()):
            if child.patchy:
                parts[at] = child.hollow_is_null(parts[at])
        return parts

    def hollow_is_null(self, column: Any) -> Any:
        """Returns a column of this type, null where it is hollow."""
        if not self.patchy:
            return column
        if self.hollow:
            return pa.nulls(len(column), self.kind)
        if column.offset:
            return conform(conform(column, without_hollow(self.kind)), self.kind)
        # the same buffers under a new roof: nothing is copied
        parts = [child.hollow_is_null(column.field(at)) for at, child in enumerate(self.parts.values())]
        return pa.Array.from_buffers(self.kind, len(column), column.buffers()[:1], children=parts)


# The rows of a Parquet part, of which a plan reads the columns it needs and no others.


@dataclass(frozen=True, slots=True)
class PartRef:
    """One part as a manifest names it."""

    name: str
    size: int
    crc32: int
    rows: int


class PartTable:
    """The rows of a part, with what `Segment` needs of an Arrow table; a column is read when asked for.

    Every page has its own checksum, so reading a few columns does not need the whole file to be verified.
    """

    def __init__(
        self, store: LogStore, names: LogNames, ref: PartRef, loaded: Any | None = None
    ) -> None:
        self.ref = ref
        self._store = store
        self._key = f"{names.directory}/{ref.name}"
        self._loaded = loaded
        self._columns: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """Returns the number of rows, dead ones included."""
        return self.ref.rows

    @cached_property
    def schema(self) -> Any:
        """Returns the Arrow schema of the file."""
        return self._file.schema_arrow if self._loaded is None else self._loaded.schema

    def column(self, name: str) -> Any:
        """Returns one column; kept, because keys and sequence numbers are asked for again and again."""
        if self._loaded is not None:
            return self._loaded.column(name)
        if name not in self._columns:
            # a struct without fields is not stored: it says nothing
            known = name in self.schema.names
            self._columns[name] = self._read([name]).column(0) if known else _hollow(self.num_rows)
        return self._columns[name]

    def leaf(self, path: Sequence[str]) -> Any:
        """Returns one part of the statistics, without reading the others."""
        if self._loaded is not None or "stats" in self._columns:
            return pc.struct_field(self.column("stats"), list(path))
        return pc.struct_field(self._read([".".join(["stats", *path])]).column("stats"), list(path))

    def take(self, rows: npt.NDArray[np.int64]) -> Any:
        """Returns these rows (in ascending order); only the row groups they are in are read."""
        if self._loaded is not None:
            return self._loaded.take(rows)
        counts = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(counts)])
        group_of = np.searchsorted(starts, rows, side="right") - 1
        groups = np.unique(group_of)
        skipped = starts[groups] - np.concatenate([[0], np.cumsum(np.asarray(counts)[groups])])[:-1]
        with self._reading() as file:
            table = file.read_row_groups(groups.tolist())
        return table.take(rows - skipped[np.searchsorted(groups, group_of)])

    def filter(self, mask: Any) -> Any:
        """Returns the rows where the mask is set, as a table in memory."""
        return self.whole().filter(mask)

    def set_column(self, index: int, name: Any, column: Any) -> Any:
        """Returns a table in memory with one column replaced."""
        return self.whole().set_column(index, name, column)

    def whole(self) -> Any:
        """Returns all columns of all rows, as a table in memory."""
        return self._loaded if self._loaded is not None else self._read(None)

    def check(self) -> None:
        """Raises unless the part is there with the size its manifest names."""
        try:
            size = self._store.head(self._key).size
        except ObjectNotFoundError:
            raise self._corrupted("it is missing") from None
        if size != self.ref.size:
            raise self._corrupted(f"it has {size} bytes, its manifest says {self.ref.size}")

    def check_bytes(self) -> None:
        """Raises unless every byte is as it was written."""
        self.check()
        if zlib.crc32(self._store.get(self._key)) != self.ref.crc32:
            raise self._corrupted("its checksum is not the one its manifest names")

    @cached_property
    def _file(self) -> Any:
        with self._translated():
            filesystem = self._store.filesystem()
            source = filesystem.open_input_file(self._key)
            return pq.ParquetFile(source, pre_buffer=True, page_checksum_verification=True)

    def _read(self, columns: list[str] | None) -> Any:
        with self._reading() as file:
            return file.read(columns=columns)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
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


def _hollow(rows: int) -> Any:
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
"""(column of a segment, field of an `add`, type); the types left out follow from the table's schema."""

TOMBSTONES: Final = pa.schema(
    [
        ("key", pa.string()),
        ("deletion_timestamp", pa.int64()),
        ("data_change", pa.bool_()),
        ("extra", pa.string()),
    ]
)
"""Removed files; `extra` is the JSON of the fields that are not known."""


@dataclass(frozen=True)
class Shape:
    """How rows are typed: by the table's schema and its partition columns."""

    schema: StructType
    partition_columns: tuple[str, ...]

    @classmethod
    def of(cls, metadata: Metadata) -> Shape:
        """Returns the shape of rows under this metadata.

        Its Arrow types are made once, however often it is opened.
        """
        return _shape(metadata.schema, metadata.partition_columns)

    @property
    def stats_type(self) -> Any:
        """Returns the whole `stats` object, each bound in its wire type."""
        return self._types["stats"]

    @cached_property
    def layout(self) -> Layout:
        """Returns the Arrow type of the body of an `add` whose fields are all known."""
        return Layout(pa.struct([(field, self._types[column]) for column, field, _ in FIELDS]))

    def columns(self) -> Any:
        """Returns the Arrow schema of a segment.

        `extra` is the JSON of tags and of fields that are not known.
        """
        return self._columns

    @cached_property
    def _columns(self) -> Any:
        return pa.schema([*self._types.items(), ("extra", pa.string())])

    @cached_property
    def _types(self) -> dict[str, Any]:
        """Returns the type of each column."""
        by_schema = {
            "partition_values": pa.struct([(name, pa.string()) for name in self.partition_columns]),
            "stats": stats_wire_type(self.schema, self.partition_columns),
        }
        return {column: by_schema.get(column, kind) for column, _, kind in FIELDS}


@lru_cache(maxsize=64)
def _shape(schema: StructType, partition_columns: tuple[str, ...]) -> Shape:
    return Shape(schema, partition_columns)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows that never change, typed by `shape`; `dead` marks those that are no longer in the table."""

    table: Any
    """An Arrow table, or a `PartTable` whose columns are in the store."""
    dead: npt.NDArray[np.bool_]
    shape: Shape

    @classmethod
    def alive(cls, table: Any, shape: Shape) -> Segment:
        """Returns a segment whose rows are all in the table."""
        return cls(table, np.zeros(table.num_rows, np.bool_), shape)

    @property
    def num_live(self) -> int:
        """Returns the number of rows that are in the table."""
        return len(self.dead) - int(np.count_nonzero(self.dead))

    def bury(self, rows: npt.NDArray[np.bool_]) -> Segment:
        """Returns the same columns, with these rows dead as well."""
        return Segment(self.table, self.dead | rows, self.shape) if rows.any() else self

    @property
    def is_sorted(self) -> bool:
        """Returns True if its rows are in order of seq and key; parts are written that way."""
        if isinstance(self.table, PartTable):
            return True
        seq = self.column("seq").to_numpy()
        keys = self.column("key").combine_chunks()
        rising = seq[:-1] < seq[1:]
        if not (rising | (seq[:-1] == seq[1:])).all():
            return False
        return bool((rising | np.asarray(pc.less(keys[:-1], keys[1:]))).all())

    def contains(self, keys: Any) -> npt.NDArray[np.bool_]:
        """Returns one bit per row: its key is one of these."""
        return np.asarray(pc.is_in(self.table.column("key"), keys))

    def without_many_dead(self) -> Segment:
        """Returns the same live rows; copied once a fifth of all rows is dead."""
        if 5 * int(np.count_nonzero(self.dead)) <= len(self.dead):
            return self
        return Segment.alive(self.table.filter(pa.array(~self.dead)), self.shape)

    def joined(self, other: Segment) -> Segment:
        """Returns the live rows of both, of one shape, in one segment."""
        tables = [s.table.filter(pa.array(~s.dead)) for s in (self, other)]
        return Segment.alive(pa.concat_tables(tables).combine_chunks(), self.shape)

    def column(self, name: str) -> Any:
        """Returns the live rows of one column."""
        return self._live(self.table.column(name))

    def statistic(self, path: tuple[str, ...]) -> Any | None:
        """Returns the live rows of one part of the statistics.

        None if this segment knows no such part.
        """
        kind = self.table.schema.field("stats").type
        for name in path:
            index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if index < 0:
                return None
            kind = kind.field(index).type
        if isinstance(self.table, PartTable):
            return self._live(self.table.leaf(path))
        return self._live(pc.struct_field(self.table.column("stats"), list(path)))

    def take(self, live_rows: npt.NDArray[np.int64]) -> Any:
        """Returns these of the live rows (numbered from 0, ascending) with all columns."""
        return self.table.take(np.flatnonzero(~self.dead)[live_rows])

    def _live(self, column: Any) -> Any:
        return column.filter(pa.array(~self.dead)) if self.dead.any() else column
