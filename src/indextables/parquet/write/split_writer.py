"""Writes a split as a Parquet file that Spark, DuckDB, Polars and pyarrow read in the same way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from indextables.core.types import (
    DataType,
    FieldPath,
    ListType,
    MapType,
    StructType,
    is_float,
    schema_to_arrow,
)
from indextables.storage.base import translated_file_write

_OPTIONS: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 3,
    "version": "2.6",
    "coerce_timestamps": "us",
    "store_decimal_as_integer": True,  # as Spark does it; halves the size of small decimals
    "write_page_index": True,
    "write_page_checksum": True,
}


@dataclass(frozen=True, slots=True)
class FileWritten:
    """What is known of a file after it is closed."""

    key: str
    rows: int
    size: int
    modification_time: int


class ParquetSplit:
    """A file that grows by row groups and becomes a split when it is closed.

    `nan_columns` get no Parquet statistics. Their bounds would not cover NaN, which is greater than everything
    for Spark and DuckDB, so both would skip NaN rows that satisfy `x > 5`.
    """

    def __init__(
        self, filesystem: FileSystem, key: str, schema: StructType, nan: frozenset[FieldPath]
    ) -> None:
        self.key = key
        self.nan_columns = nan
        self.rows = 0
        self._arrow_schema = schema_to_arrow(schema)
        statistics = columns_with_statistics(schema, nan)
        with translated_file_write(key):
            filesystem.create_dir(key.rpartition("/")[0], recursive=True)
            self._file = filesystem.open_output_stream(key)
            self._writer = pq.ParquetWriter(
                self._file, self._arrow_schema, write_statistics=statistics, **_OPTIONS
            )

    @property
    def size(self) -> int:
        """Returns the number of bytes written so far."""
        return int(self._file.tell())

    def write(self, rows: pa.Table) -> None:
        """Writes these rows as one row group."""
        with translated_file_write(self.key):
            self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        self.rows += rows.num_rows

    def close(self) -> FileWritten:
        """Writes the footer; the file is complete after this, but may not be on the disk yet."""
        with translated_file_write(self.key):
            self._writer.close()
            size = self.size
            self._file.close()
        return FileWritten(self.key, self.rows, size, time.time_ns() // 1_000_000)

    def abandon(self) -> None:
        """Closes the file without a footer, so that it cannot be read."""
        self._file.close()


def nan_columns(rows: pa.Table, floats: Sequence[FieldPath]) -> frozenset[FieldPath]:
    """Returns the float fields that have a NaN in these rows."""
    return frozenset(path for path in floats if pc.any(pc.is_nan(_leaf(rows, path))).as_py())


def float_fields(schema: StructType) -> tuple[FieldPath, ...]:
    """Returns the float columns and the float fields of structs."""
    return tuple(column.path for column in _columns(schema) if column.is_float and not column.repeated)


def columns_with_statistics(schema: StructType, nan: frozenset[FieldPath]) -> list[str]:
    """Returns Parquet's dotted names of the columns whose statistics every reader understands in the same way."""
    columns = list(_columns(schema))
    # Column `a.b` and field b of struct a have the same dotted name: if one has a NaN, neither gets statistics.
    without = {c.dotted for c in columns if c.path in nan or (c.is_float and c.repeated)}
    return [c.dotted for c in columns if c.dotted not in without]


@dataclass(frozen=True, slots=True)
class _Column:
    path: FieldPath
    dotted: str
    is_float: bool
    repeated: bool


def _columns(schema: StructType) -> Iterator[_Column]:
    for field in schema:
        yield from _descend(field.type, (field.name,), field.name, repeated=False)


def _descend(kind: DataType, path: FieldPath, dotted: str, *, repeated: bool) -> Iterator[_Column]:
    match kind:
        case StructType(fields=fields):
            for field in fields:
                below = (*path, field.name)
                yield from _descend(field.type, below, f"{dotted}.{field.name}", repeated=repeated)
        case ListType(element=element):
            yield from _descend(element, (*path, "element"), f"{dotted}.list.element", repeated=True)
        case MapType(key=key, value=value):
            for name, inner in (("key", key), ("value", value)):
                yield from _descend(inner, (*path, name), f"{dotted}.key_value.{name}", repeated=True)
        case _:
            yield _Column(path, dotted, is_float(kind), repeated)


def _leaf(rows: pa.Table, path: FieldPath) -> pa.ChunkedArray:
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column
