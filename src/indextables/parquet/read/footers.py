"""One bound from a Parquet footer, as the table's type compares it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

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
from indextables.parquet.read.calendar import is_other_calendar, without_old_times
from indextables.storage.base import failure

_MICROS_PER_DAY: Final = 86_400_000_000
_MICROS: Final = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
"""Microseconds per unit, as a fraction."""
_ARROW_TEXT: Final = frozenset(
    (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """Where a leaf's column chunks are in every row group, and the type the file gives it."""

    index: int
    type: Any
    repeated: bool
    column: Any

    @property
    def required(self) -> bool:
        """Returns whether Parquet itself rules NULL out."""
        return bool(self.column.max_definition_level == 0)


def bound_of(stats: Any, chunk: ColumnChunk, dtype: DataType, side: Round) -> Physical | None:
    """Returns a bound of the file as the table's type compares it.

    None where the two types do not meet.
    """
    # Not .min and .max: they raise for years outside 1-9999 and for bytes that are no text.
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


def _is_text(kind: Any) -> bool:
    return kind in _ARROW_TEXT or pa.types.is_fixed_size_binary(kind)


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _integer(raw: int, kind: Any) -> int:
    # The footer holds an unsigned number in a signed type.
    is_unsigned = pa.types.is_unsigned_integer(kind)
    return int(raw) % 2**kind.bit_width if is_unsigned else int(raw)


def _micros(raw: int, chunk: ColumnChunk, side: Round) -> int | None:
    # Not the Arrow type's unit: Parquet has no seconds, and a hint in the file may still say so.
    unit = json.loads(chunk.column.logical_type.to_json()).get("timeUnit")
    if unit not in _MICROS:
        return None
    numerator, denominator = _MICROS[unit]
    scaled = raw * numerator
    return scaled // denominator if side == "down" else -(-scaled // denominator)


# Statistics from the footers of Parquet files, without reading a row.
#
# *Trusted* are files of our own write paths: Spark's writer, and our Arrow writer, which leaves the
# statistics of a float column out where it holds NaN. Of any other file less is believed: a text may
# have been cut to a shorter bound, and nobody says whether there is a NaN.

_TEXT: Final = (PrimitiveType("string"), PrimitiveType("binary"))


def read_footers(filesystem: Any, keys: Sequence[str], threads: int = 16) -> list[Any]:
    """Returns the Parquet footer of each file, in order; an error names the file that has none."""

    def read(key: str) -> Any:
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
    metadata: Any, schema: StructType, columns: Sequence[FieldPath], *, trusted: bool
) -> SplitStats:
    """Returns what the footer proves of these leaves; what it does not prove is unknown."""
    wanted = set(columns)
    chunks = _chunks(metadata)
    groups = [
        group for i in range(metadata.num_row_groups) if (group := metadata.row_group(i)).num_rows
    ]
    found = {
        leaf.path: _leaf_stats(leaf, chunks, groups, metadata.num_rows, trusted=trusted)
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


def _chunks(metadata: Any) -> dict[FieldPath, ColumnChunk] | None:
    """Returns every leaf of the file by its path; None if the file's schema is beyond us.

    Parquet's own dotted names do not tell a field b of a from a column `a.b`; positions do.
    """
    try:
        fields = list(metadata.schema.to_arrow_schema())
    except (pa.ArrowException, ValueError):
        return None
    placed = [leaf for field in fields for leaf in _descend(field, (field.name,), repeated=False)]
    if len(placed) != metadata.num_columns:
        return None
    return {
        path: ColumnChunk(i, kind, repeated, metadata.schema.column(i))
        for i, (path, kind, repeated) in enumerate(placed)
    }


def _descend(field: Any, path: FieldPath, *, repeated: bool) -> Iterator[tuple[FieldPath, Any, bool]]:
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
    groups: list[Any],
    rows: int,
    *,
    trusted: bool,
) -> _Found:
    if chunks is None:
        return _Found()
    chunk = _place(leaf.path, chunks)
    if chunk is None:
        # A reader fills a column the file lacks with NULL; one that is there in another shape,
        # as lists and variants are, has no statistics of its own.
        is_there = any(_overlap(path, leaf.path) for path in chunks)
        return _Found() if is_there else _all_null(leaf, rows)
    if chunk.repeated:
        return _Found()
    stats = [group.column(chunk.index).statistics for group in groups]
    nulls = _null_count(stats, required=chunk.required)
    if nulls == rows:
        return _all_null(leaf, rows)
    if not is_orderable(leaf.type, leaf.field.metadata):
        return _Found(nulls=nulls)
    return _with_bounds(leaf, chunk, stats, [g.num_rows for g in groups], nulls, trusted=trusted)


def _place(path: FieldPath, chunks: dict[FieldPath, ColumnChunk]) -> ColumnChunk | None:
    """Returns the file's column a reader takes: names match without case, as Spark's do."""
    if path in chunks:
        return chunks[path]
    similar = [chunk for found, chunk in chunks.items() if _folded(found) == _folded(path)]
    return similar[0] if len(similar) == 1 else None


def _overlap(a: FieldPath, b: FieldPath) -> bool:
    shared = min(len(a), len(b))
    return _folded(a[:shared]) == _folded(b[:shared])


def _folded(path: FieldPath) -> FieldPath:
    return tuple(part.lower() for part in path)


def _all_null(leaf: Leaf, rows: int) -> _Found:
    return _Found(nulls=rows, nans=0 if is_float(leaf.type) else None)


def _null_count(stats: list[Any], *, required: bool) -> int | None:
    if required:
        return 0
    if any(s is None or not s.has_null_count for s in stats):
        return None
    return sum(int(s.null_count) for s in stats)


def _with_bounds(
    leaf: Leaf,
    chunk: ColumnChunk,
    stats: list[Any],
    rows: list[int],
    nulls: int | None,
    *,
    trusted: bool,
) -> _Found:
    # A row group of NULLs has no bounds and needs none.
    filled = [s for s, n in zip(stats, rows, strict=True) if not _is_all_null(s, n)]
    if any(s is None or not s.has_min_max for s in filled):
        # Spark's writer leaves bounds out when they exceed 4 KiB together.
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


def _is_all_null(stats: Any, rows: int) -> bool:
    return stats is not None and bool(stats.has_null_count and stats.null_count == rows)


def _is_nan(value: Physical | None) -> bool:
    return isinstance(value, float) and math.isnan(value)
