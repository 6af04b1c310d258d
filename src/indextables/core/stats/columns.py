"""Where statistics come from: a few columnar calls that a snapshot, or a list of splits, can answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats.split_stats import SplitStats
from indextables.core.stats.values import Omit, Physical, encode_value, wire_type
from indextables.core.types import DataType, FieldPath, StructType, resolve

# From Arrow to numpy: one array whatever the chunks, one bit per split whatever the nulls.

FileMask: TypeAlias = npt.NDArray[np.bool_]
"""One bit per split, in the order of the source."""


def as_array(column: Any) -> Any:
    """Returns one Arrow array, whatever number of chunks the column has."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def as_mask(booleans: Any, *, unknown: bool = False) -> FileMask:
    """Returns an Arrow boolean array as a mask, its nulls answered by `unknown`."""
    filled = booleans.fill_null(unknown) if booleans.null_count else booleans
    mask: FileMask = filled.to_numpy(zero_copy_only=False)
    return mask


def is_null(column: Any) -> FileMask:
    """Returns where an Arrow array has no value."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return as_mask(column.is_null())


def without(column: Any, rows: FileMask) -> Any:
    """Returns the array with these rows unknown."""
    if not rows.any():
        return column
    return pc.if_else(pa.array(rows), pa.scalar(None, column.type), column)


@runtime_checkable
class StatsSource(Protocol):
    """The statistics of all live splits, one array per question, all in one row order.

    An array is a pyarrow Array or ChunkedArray of `num_rows` values. None for a whole column, or a
    null for one split, means *unknown*. A call decodes no more than it is asked for.
    """

    @property
    def num_rows(self) -> int:
        """Returns the number of splits."""
        ...

    @property
    def schema(self) -> StructType:
        """Returns the table's schema, by which every value is decoded."""
        ...

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Returns columns whose value is one per split and known."""
        ...

    def num_records(self) -> Any:
        """Returns rows per split, int64."""
        ...

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> Any | None:
        """Returns the stored bound of a leaf, in its wire type (`core.stats.values.wire_type`)."""
        ...

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> Any | None:
        """Returns how many rows are NULL, or NaN, int64."""
        ...

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:
        """Returns True where the stored bound is only a bound, not a value of the column.

        None: nowhere.
        """
        ...

    def partition_value(self, name: str) -> Any:
        """Returns the value of a partition column as text; null is NULL."""
        ...

    def absent(self, path: FieldPath) -> FileMask | None:
        """Returns True where the column is newer than the split: every row is NULL there, and that is known."""
        ...


@dataclass(frozen=True, slots=True)
class ListSource:
    """A StatsSource over a handful of splits that are plain Python objects."""

    stats: Sequence[SplitStats]
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    partition_values: Sequence[Mapping[str, str | None]] = ()
    newer: Sequence[Collection[FieldPath]] = ()
    """For each split, the columns the table got after it was written."""

    @property
    def num_rows(self) -> int:
        """Returns the number of splits."""
        return len(self.stats)

    def num_records(self) -> Any:
        """Returns rows per split."""
        return pa.array([s.num_records for s in self.stats], pa.int64())

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> Any | None:
        """Returns the bounds as a parsed log line would hold them."""
        _, dtype = resolve(self.schema, path, case_sensitive=True)
        rows = [(s.min_values if which == "min" else s.max_values).get(path) for s in self.stats]
        return pa.array([_to_wire(value, dtype) for value in rows], wire_type(dtype))

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> Any | None:
        """Returns the counts that are known."""
        counts = (s.null_count if which == "null" else s.nan_count for s in self.stats)
        return pa.array([count.get(path) for count in counts], pa.int64())

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:
        """Returns which bounds are listed as inexact."""
        listed = (s.inexact_min if which == "min" else s.inexact_max for s in self.stats)
        return np.array([path in paths for paths in listed], np.bool_)

    def partition_value(self, name: str) -> Any:
        """Returns the value of a partition column as text."""
        return pa.array([values.get(name) for values in self.partition_values], pa.string())

    def absent(self, path: FieldPath) -> FileMask | None:
        """Returns True where the column, or a struct around it, is newer than the split."""
        if not self.newer:
            return None
        ancestors = [path[:length] for length in range(1, len(path) + 1)]
        return np.array([any(a in paths for a in ancestors) for paths in self.newer], np.bool_)


def _to_wire(value: Physical | None, dtype: DataType) -> Any:
    if value is None or isinstance(value, float):
        return value
    encoded = encode_value(value, dtype)
    return None if isinstance(encoded, Omit) else encoded


def source_of(
    stats: Sequence[SplitStats],
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    partition_values: Sequence[Mapping[str, str | None]] = (),
    newer: Sequence[Collection[FieldPath]] = (),
) -> StatsSource:
    """Returns a source over splits that are not in a log: those of a commit in the making, or of a test."""
    return ListSource(list(stats), schema, tuple(partition_columns), partition_values, newer)
