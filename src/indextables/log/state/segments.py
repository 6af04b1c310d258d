"""Live splits as Arrow columns: immutable rows, and one bit per row for the dead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats import stats_wire_type
from indextables.core.types import StructType
from indextables.log.state.layout import Layout
from indextables.log.state.part_table import PartTable
from indextables.log.wire.actions import Metadata

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
        """The shape of rows under this metadata; its Arrow types are made once, however often it is opened."""
        return _shape(metadata.schema, metadata.partition_columns)

    @property
    def stats_type(self) -> Any:
        """The whole `stats` object, each bound in its wire type."""
        return self._types["stats"]

    @cached_property
    def layout(self) -> Layout:
        """The Arrow type of the body of an `add` whose fields are all known."""
        return Layout(pa.struct([(field, self._types[column]) for column, field, _ in FIELDS]))

    def columns(self) -> Any:
        """The Arrow schema of a segment; `extra` is the JSON of tags and of fields that are not known."""
        return self._columns

    @cached_property
    def _columns(self) -> Any:
        return pa.schema([*self._types.items(), ("extra", pa.string())])

    @cached_property
    def _types(self) -> dict[str, Any]:
        """The type of each column."""
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
        """A segment whose rows are all in the table."""
        return cls(table, np.zeros(table.num_rows, np.bool_), shape)

    @property
    def num_live(self) -> int:
        """The number of rows that are in the table."""
        return len(self.dead) - int(np.count_nonzero(self.dead))

    def bury(self, rows: npt.NDArray[np.bool_]) -> Segment:
        """The same columns, with these rows dead as well."""
        return Segment(self.table, self.dead | rows, self.shape) if rows.any() else self

    @property
    def is_sorted(self) -> bool:
        """True if its rows are in order of seq and key; parts are written that way."""
        if isinstance(self.table, PartTable):
            return True
        seq = self.column("seq").to_numpy()
        keys = self.column("key").combine_chunks()
        rising = seq[:-1] < seq[1:]
        if not (rising | (seq[:-1] == seq[1:])).all():
            return False
        return bool((rising | np.asarray(pc.less(keys[:-1], keys[1:]))).all())

    def contains(self, keys: Any) -> npt.NDArray[np.bool_]:
        """One bit per row: its key is one of these."""
        return np.asarray(pc.is_in(self.table.column("key"), keys))

    def without_many_dead(self) -> Segment:
        """The same live rows; copied once a fifth of all rows is dead."""
        if 5 * int(np.count_nonzero(self.dead)) <= len(self.dead):
            return self
        return Segment.alive(self.table.filter(pa.array(~self.dead)), self.shape)

    def joined(self, other: Segment) -> Segment:
        """The live rows of both, of one shape, in one segment."""
        tables = [s.table.filter(pa.array(~s.dead)) for s in (self, other)]
        return Segment.alive(pa.concat_tables(tables).combine_chunks(), self.shape)

    def column(self, name: str) -> Any:
        """The live rows of one column."""
        return self._live(self.table.column(name))

    def statistic(self, path: tuple[str, ...]) -> Any | None:
        """The live rows of one part of the statistics; None if this segment knows no such part."""
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
        """These of the live rows (numbered from 0, ascending) with all columns."""
        return self.table.take(np.flatnonzero(~self.dead)[live_rows])

    def _live(self, column: Any) -> Any:
        return column.filter(pa.array(~self.dead)) if self.dead.any() else column
