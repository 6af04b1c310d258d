"""Statistics from the footers of Parquet files, without reading a row.

*Trusted* files were written by Spark's writer, or by this library's, which omits the statistics of a float
column that has a NaN. Other files are trusted less: a text may have been cut to a shorter bound, and
nothing says whether there is a NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from indextables.core.stats import SplitStats
from indextables.core.stats.values import Physical, Round, decode_value
from indextables.core.types import (
    DataType,
    DecimalType,
    FieldPath,
    Leaf,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    leaves,
)
from indextables.errors import NotATableError, ObjectNotFoundError, StorageError
from indextables.storage.base import failure

_MICROS_PER_DAY: Final = 86_400_000_000
_MICROS: Final = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
"""Microseconds per unit, as a fraction."""
# Bounds of one column, in the form in which the table's type compares them.

_ARROW_TEXT: Final = frozenset(
    (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """A leaf of the file: the number of its column chunk in each row group, and its type in the file."""

    index: int
    type: pa.DataType
    repeated: bool
    column: pq.ColumnSchema

    @property
    def required(self) -> bool:
        """Returns whether Parquet itself rules out NULL."""
        return bool(self.column.max_definition_level == 0)


def bound_of(stats: pq.Statistics, chunk: ColumnChunk, dtype: DataType, side: Round) -> Physical | None:
    """Returns a bound of the file as the table's type compares it; None if the types do not fit."""
    # .min and .max would raise for years outside 1-9999 and for bytes that are not text.
    kind, raw = chunk.type, stats.min_raw if side == "down" else stats.max_raw
    match dtype:
        case PrimitiveType("timestamp" | "timestamp_ntz" as name) if pa.types.is_timestamp(kind):
            return _micros(raw, chunk, side) if (name == "timestamp") is bool(kind.tz) else None
        case PrimitiveType("timestamp_ntz") if pa.types.is_date32(kind):
            return int(raw) * _MICROS_PER_DAY
        case PrimitiveType("date") if pa.types.is_date32(kind):
            return int(raw)
        case PrimitiveType("boolean") if pa.types.is_boolean(kind):
            return bool(raw)
        case PrimitiveType("float") if pa.types.is_float32(kind):
            return float(raw)
        case PrimitiveType("double") if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return float(raw)
        case PrimitiveType("string") if _is_text(kind):
            return _text(raw)
        case PrimitiveType("binary") if _is_text(kind):
            return bytes(raw)
        case DecimalType() if pa.types.is_decimal(kind):
            return decode_value(f"{stats.min if side == 'down' else stats.max:f}", dtype, side)
        case DecimalType() | PrimitiveType() if pa.types.is_integer(kind):
            return decode_value(_integer(raw, kind), dtype, side)
        case _:
            return None


def _is_text(kind: pa.DataType) -> bool:
    return kind in _ARROW_TEXT or pa.types.is_fixed_size_binary(kind)


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _integer(raw: int, kind: pa.DataType) -> int:
    # The footer has unsigned numbers as signed ones.
    is_unsigned = pa.types.is_unsigned_integer(kind)
    return int(raw) % 2**kind.bit_width if is_unsigned else int(raw)


def _micros(raw: int, chunk: ColumnChunk, side: Round) -> int | None:
    # The unit of the Arrow type may be seconds, by a hint in the file, but Parquet has no seconds.
    unit = json.loads(chunk.column.logical_type.to_json()).get("timeUnit")
    if unit not in _MICROS:
        return None
    numerator, denominator = _MICROS[unit]
    scaled = raw * numerator
    return scaled // denominator if side == "down" else -(-scaled // denominator)


# Statistics of all columns, from the row groups of a footer.

_TEXT: Final = (PrimitiveType("string"), PrimitiveType("binary"))


def read_footers(
    filesystem: FileSystem, keys: Sequence[str], threads: int = 16
) -> list[pq.FileMetaData]:
    """Returns the footer of each file, in order; an error names the file that has none."""

    def read(key: str) -> pq.FileMetaData:
        try:
            return pq.read_metadata(key, filesystem=filesystem)
        except FileNotFoundError as e:
            raise ObjectNotFoundError(f"there is no file {key!r}", key=key) from e
        except pa.ArrowInvalid as e:
            raise NotATableError(
                f"{key!r} is not a Parquet file: {e}", hint="remove the file or write it again", key=key
            ) from e
        except StorageError:
            raise
        except OSError as e:
            raise failure(f"the data file {key!r} cannot be read: {e}", e, key) from e

    if len(keys) < 2:
        return [read(key) for key in keys]
    with ThreadPoolExecutor(min(threads, len(keys)), "footers") as pool:
        return list(pool.map(read, keys))


def stats_from_footer(
    metadata: pq.FileMetaData, schema: StructType, columns: Sequence[FieldPath], *, trusted: bool
) -> SplitStats:
    """Returns what the footer proves of these leaves; what it does not prove is unknown."""
    wanted = set(columns)
    chunks = _chunks(metadata)
    every = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    row_groups = [row_group for row_group in every if row_group.num_rows]
    found = {
        leaf.path: _leaf_stats(leaf, chunks, row_groups, metadata.num_rows, trusted=trusted)
        for leaf in leaves(schema)
        if leaf.path in wanted
    }
    stats = SplitStats(
        num_records=metadata.num_rows,
        min_values={p: f.low for p, f in found.items() if f.low is not None},
        max_values={p: f.high for p, f in found.items() if f.high is not None},
        null_count={p: f.nulls for p, f in found.items() if f.nulls is not None},
        nan_count={p: f.nans for p, f in found.items() if f.nans is not None},
        inexact_min=frozenset(p for p, f in found.items() if f.inexact and f.low is not None),
        inexact_max=frozenset(p for p, f in found.items() if f.inexact and f.high is not None),
        dropped=frozenset(p for p, f in found.items() if f.dropped),
    )
    return without_old_times(stats, schema) if is_other_calendar(metadata) else stats


@dataclass(frozen=True, slots=True)
class _Found:
    low: Physical | None = None
    high: Physical | None = None
    nulls: int | None = None
    nans: int | None = None
    inexact: bool = False
    dropped: bool = False


def _chunks(metadata: pq.FileMetaData) -> dict[FieldPath, ColumnChunk] | None:
    """Returns every leaf of the file by its path; None if Arrow cannot read the file's schema.

    Leaves are matched by their order: the dotted names in a footer do not tell field b of a from column `a.b`.
    """
    try:
        fields = list(metadata.schema.to_arrow_schema())
    except (pa.ArrowException, ValueError):
        return None
    found = [leaf for field in fields for leaf in _descend(field, (field.name,), repeated=False)]
    if len(found) != metadata.num_columns:
        return None
    return {
        path: ColumnChunk(i, kind, repeated, metadata.schema.column(i))
        for i, (path, kind, repeated) in enumerate(found)
    }


def _descend(
    field: pa.Field, path: FieldPath, *, repeated: bool
) -> Iterator[tuple[FieldPath, pa.DataType, bool]]:
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    for i in range(kind.num_fields):
        child = kind.field(i)
        inside = repeated or not pa.types.is_struct(kind)
        yield from _descend(child, (*path, child.name), repeated=inside)
    if not kind.num_fields:
        yield path, kind, repeated


def _leaf_stats(
    leaf: Leaf,
    chunks: dict[FieldPath, ColumnChunk] | None,
    row_groups: Sequence[pq.RowGroupMetaData],
    rows: int,
    *,
    trusted: bool,
) -> _Found:
    if chunks is None:
        return _Found()
    chunk = _chunk_of(leaf.path, chunks)
    if chunk is None:
        # A reader fills a column that the file lacks with NULL. A column that the file has in another
        # form, such as a list or a variant, has no statistics of its own.
        is_there = any(_overlap(path, leaf.path) for path in chunks)
        return _Found() if is_there else _all_null(leaf, rows)
    if chunk.repeated:
        return _Found()
    stats = [row_group.column(chunk.index).statistics for row_group in row_groups]
    nulls = _null_count(stats, required=chunk.required)
    if nulls == rows:
        return _all_null(leaf, rows)
    if not is_orderable(leaf.type, leaf.field.metadata):
        return _Found(nulls=nulls)
    return _with_bounds(leaf, chunk, stats, [g.num_rows for g in row_groups], nulls, trusted=trusted)


def _chunk_of(path: FieldPath, chunks: dict[FieldPath, ColumnChunk]) -> ColumnChunk | None:
    """Returns the column of the file that a reader uses; as in Spark, names match without regard to case."""
    if path in chunks:
        return chunks[path]
    similar = [chunk for found, chunk in chunks.items() if _folded(found) == _folded(path)]
    return similar[0] if len(similar) == 1 else None


def _overlap(a: FieldPath, b: FieldPath) -> bool:
    shared = min(len(a), len(b))
    return _folded(a[:shared]) == _folded(b[:shared])


def _folded(path: FieldPath) -> FieldPath:
    return tuple(name.lower() for name in path)


def _all_null(leaf: Leaf, rows: int) -> _Found:
    return _Found(nulls=rows, nans=0 if is_float(leaf.type) else None)


def _null_count(stats: Sequence[pq.Statistics | None], *, required: bool) -> int | None:
    if required:
        return 0
    known = [s for s in stats if s is not None and s.has_null_count]
    return sum(int(s.null_count) for s in known) if len(known) == len(stats) else None


def _with_bounds(
    leaf: Leaf,
    chunk: ColumnChunk,
    stats: Sequence[pq.Statistics | None],
    rows: Sequence[int],
    nulls: int | None,
    *,
    trusted: bool,
) -> _Found:
    # A row group in which every value is NULL has no bounds and needs none.
    filled = [s for s, n in zip(stats, rows, strict=True) if not _is_all_null(s, n)]
    if any(s is None or not s.has_min_max for s in filled):
        # Spark's writer leaves out bounds that exceed 4 KiB together.
        return _Found(nulls=nulls, dropped=trusted and leaf.type in _TEXT)
    lows = [bound_of(s, chunk, leaf.type, "down") for s in filled]
    highs = [bound_of(s, chunk, leaf.type, "up") for s in filled]
    has_nan = any(map(_is_nan, (*lows, *highs)))
    if has_nan and not (trusted and not any(map(_is_nan, lows))):
        lows = highs = [None]
    return _Found(
        low=_combined(lows, min),
        high=None if has_nan else _combined(highs, max),
        nulls=nulls,
        nans=0 if trusted and is_float(leaf.type) and not has_nan else None,
        inexact=not trusted and leaf.type in _TEXT,
    )


def _combined(bounds: list[Physical | None], pick: Callable[..., Physical]) -> Physical | None:
    return None if not bounds or None in bounds else pick(bounds)


def _is_all_null(stats: pq.Statistics | None, rows: int) -> bool:
    return stats is not None and bool(stats.has_null_count and stats.null_count == rows)


def _is_nan(value: Physical | None) -> bool:
    return isinstance(value, float) and math.isnan(value)


# Files with old dates and times that were counted in another calendar.
#
# Spark 2 counted the days before 15 October 1582 in the Julian calendar, and newer Sparks still do if they
# are set to. The footer of the file says so. Spark then reads other values than the file has, so their bounds
# are unknown.

_VERSION: Final = b"org.apache.spark.version"
_MARKS: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_UNMARKED: Final = b"3.1.0"
"""A file of an older Spark may have the other calendar without a mark; compared as text, as Spark does it."""
_SAME_SINCE: Final = {
    "date": -141_427,  # 15 October 1582
    # Local times are shifted until 1900; one more day covers the offset of every time zone.
    "timestamp": -2_208_902_400_000_000,
    "timestamp_ntz": -2_208_902_400_000_000,
}


def is_other_calendar(metadata: pq.FileMetaData) -> bool:
    """Returns whether Spark reads old dates and times of the file with this footer as Julian ones."""
    found = metadata.metadata or {}
    return any(mark in found for mark in _MARKS) or found.get(_VERSION, b"9") < _FIRST_UNMARKED


def has_old_times(stats: SplitStats, schema: StructType) -> bool:
    """Returns whether a bound is so old that the calendar matters."""
    return bool(_old(stats, schema))


def without_old_times(stats: SplitStats, schema: StructType) -> SplitStats:
    """Returns the statistics without bounds that are so old that the calendar matters."""
    old = _old(stats, schema)
    if not old:
        return stats
    low, high = stats.min_values, stats.max_values
    return replace(
        stats,
        min_values={path: low[path] for path in low if ("min", path) not in old},
        max_values={path: high[path] for path in high if ("max", path) not in old},
        dropped=stats.dropped | {path for _, path in old},
    )


def _old(stats: SplitStats, schema: StructType) -> set[tuple[str, FieldPath]]:
    found = set()
    for leaf in leaves(schema):
        match leaf.type:
            case PrimitiveType(name) if name in _SAME_SINCE:
                for side, bounds in (("min", stats.min_values), ("max", stats.max_values)):
                    bound = bounds.get(leaf.path)
                    if isinstance(bound, int) and bound < _SAME_SINCE[name]:
                        found.add((side, leaf.path))
            case _:
                continue
    return found
