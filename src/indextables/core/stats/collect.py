"""Statistics of Arrow data, and of a whole from those of its pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import FAST_FIELDS, NUM_INDEXED_COLS, STATS_COLUMNS, Config, Option
from indextables.core.stats.split_stats import SplitStats
from indextables.core.stats.wire import Physical
from indextables.core.types.arrow import type_to_arrow
from indextables.core.types.types import (
    DataType,
    FieldPath,
    Leaf,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    leaves,
    parse_path,
    resolve,
)
from indextables.errors import ConfigError, UnknownColumnError

V = TypeVar("V")
_Range: TypeAlias = tuple[Physical | None, Physical | None]

# Offsets have 64 bits, so that a dictionary that decodes to more than 2 GiB of text does not overflow.
_WIDE: Final[dict[DataType, pa.DataType]] = {
    PrimitiveType("string"): pa.large_string(),
    PrimitiveType("binary"): pa.large_binary(),
}
_COUNTED: Final[dict[DataType, pa.DataType]] = {
    PrimitiveType("date"): pa.int32(),
    PrimitiveType("timestamp"): pa.int64(),
    PrimitiveType("timestamp_ntz"): pa.int64(),
}


def stats_columns(
    schema: StructType, partition_columns: Sequence[str], config: Config
) -> tuple[FieldPath, ...]:
    """Returns the leaves that get statistics, in the schema's order.

    Raises ConfigError if an option names a column that the schema does not have.
    """
    candidates = [leaf.path for leaf in leaves(schema) if leaf.path[0] not in set(partition_columns)]
    named, always = config.get(STATS_COLUMNS), config.get(FAST_FIELDS)
    limit = config.get(NUM_INDEXED_COLS)
    if named:
        chosen = _below(schema, STATS_COLUMNS, named)
    else:
        chosen = set(candidates if limit < 0 else candidates[:limit])
    chosen |= _below(schema, FAST_FIELDS, always)
    return tuple(path for path in candidates if path in chosen)


def _below(schema: StructType, option: Option[tuple[str, ...]], names: Sequence[str]) -> set[FieldPath]:
    """Returns the named leaves, and all leaves of each named struct."""
    try:
        wanted = {resolve(schema, parse_path(name))[0] for name in names}
    except UnknownColumnError as e:
        raise ConfigError(
            f"{option.key} names a column the table does not have: {e.message}",
            hint=e.hint,
            key=option.key,
        ) from e
    return {
        leaf.path for leaf in leaves(schema) if any(leaf.path[: len(path)] == path for path in wanted)
    }


def collect_stats(
    data: pa.Table | pa.RecordBatch, schema: StructType, columns: Sequence[FieldPath]
) -> SplitStats:
    """Returns exact counts of these leaves, and exact bounds of those that have an order.

    A column that the data lacks counts as NULL in every row, because every reader fills it with NULL.
    """
    wanted = set(columns)
    low: dict[FieldPath, Physical] = {}
    high: dict[FieldPath, Physical] = {}
    nulls: dict[FieldPath, int] = {}
    nans: dict[FieldPath, int] = {}
    for leaf in leaves(schema):
        if leaf.path not in wanted:
            continue
        values = _column(data, leaf)
        nulls[leaf.path] = data.num_rows if values is None else values.null_count
        if is_float(leaf.type):
            nans[leaf.path] = 0 if values is None else _nan_count(values)
        if values is None or not is_orderable(leaf.type, leaf.field.metadata):
            continue
        minimum, maximum = _range(values, leaf.type)
        if minimum is not None:
            low[leaf.path] = minimum
        if maximum is not None:
            high[leaf.path] = maximum
    return SplitStats(data.num_rows, low, high, nulls, nans)


def _column(data: pa.Table | pa.RecordBatch, leaf: Leaf) -> pa.Array | pa.ChunkedArray | None:
    """Returns the values of a leaf, NULL where a struct around it is NULL; None if the data lacks it."""
    path = leaf.path
    if path[0] not in data.schema.names:
        return None
    values = data.column(path[0])
    for name in path[1:]:
        if values.type.get_field_index(name) < 0:
            return None
        # StructArray.field would show the values that are hidden by a NULL struct.
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    if not is_orderable(leaf.type, leaf.field.metadata):
        return values
    # The cast also decodes a dictionary, which may contain a NULL that null_count does not count.
    return values.cast(_WIDE.get(leaf.type) or type_to_arrow(leaf.type))


def _nan_count(values: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(pc.is_nan(values)).as_py() or 0)


def _range(values: pa.Array | pa.ChunkedArray, dtype: DataType) -> _Range:
    """Returns the least and the greatest physical value; None where there is none."""
    found = pc.min_max(values)
    return _physical(found["min"], dtype), _physical(found["max"], dtype)


def _physical(value: pa.Scalar, dtype: DataType) -> Physical | None:
    if dtype in _COUNTED:
        # as_py() raises for a year outside 1-9999.
        value = value.cast(_COUNTED[dtype])
    try:
        plain: Physical | None = value.as_py()
    except UnicodeDecodeError:  # a string column can hold bytes that are not text
        return None
    # Arrow skips NaN unless there is no other value.
    return None if plain != plain else plain  # noqa: PLR0124


# The statistics of a whole from those of its pieces: row groups of a split, splits of a slice.


def merge_stats(pieces: Sequence[SplitStats]) -> SplitStats:
    """Returns what is true of the rows of all pieces together.

    A column keeps a bound only if every piece has that bound or is known to have no values there.
    Statistics must be merged before they are truncated, because a marked prefix does not compare as a value.

    >>> a = SplitStats(2, {("x",): 1}, {("x",): 5}, {("x",): 0})
    >>> b = SplitStats(1, {}, {}, {("x",): 1})
    >>> merge_stats([a, b])  # doctest: +ELLIPSIS
    SplitStats(num_records=3, min_values={('x',): 1}, max_values={('x',): 5}, null_count={('x',): 1}...
    """
    if len(pieces) == 1:
        return pieces[0]
    low, inexact_min = _bounds(pieces, min, lambda piece: (piece.min_values, piece.inexact_min))
    high, inexact_max = _bounds(pieces, max, lambda piece: (piece.max_values, piece.inexact_max))
    records = [piece.num_records for piece in pieces]
    return SplitStats(
        num_records=None if None in records else sum(n for n in records if n is not None),
        min_values=low,
        max_values=high,
        null_count=_counts([piece.null_count for piece in pieces]),
        nan_count=_counts([piece.nan_count for piece in pieces]),
        inexact_min=inexact_min,
        inexact_max=inexact_max,
        dropped=frozenset[FieldPath]().union(*(piece.dropped for piece in pieces)),
    )


def exchange_columns(old: SplitStats, new: SplitStats, columns: Sequence[FieldPath]) -> SplitStats:
    """Returns `old`, but with the statistics of these columns taken from `new`."""
    names = set(columns)

    def mapping(one: Mapping[FieldPath, V], two: Mapping[FieldPath, V]) -> dict[FieldPath, V]:
        kept = {path: value for path, value in one.items() if path not in names}
        return kept | {path: value for path, value in two.items() if path in names}

    return SplitStats(
        num_records=old.num_records if new.num_records is None else new.num_records,
        min_values=mapping(old.min_values, new.min_values),
        max_values=mapping(old.max_values, new.max_values),
        null_count=mapping(old.null_count, new.null_count),
        nan_count=mapping(old.nan_count, new.nan_count),
        inexact_min=(old.inexact_min - names) | (new.inexact_min & names),
        inexact_max=(old.inexact_max - names) | (new.inexact_max & names),
        dropped=(old.dropped - names) | (new.dropped & names),
    )


def _bounds(
    pieces: Sequence[SplitStats],
    better: Callable[[Any, Any], Physical],
    side: Callable[[SplitStats], tuple[Mapping[FieldPath, Physical], frozenset[FieldPath]]],
) -> tuple[dict[FieldPath, Physical], frozenset[FieldPath]]:
    bounds: dict[FieldPath, Physical] = {}
    inexact: set[FieldPath] = set()
    for path in dict.fromkeys(path for piece in pieces for path in side(piece)[0]):
        known = [piece for piece in pieces if path in side(piece)[0]]
        if any(not _has_no_value(piece, path) for piece in pieces if path not in side(piece)[0]):
            continue
        best = side(known[0])[0][path]
        for piece in known[1:]:
            best = better(best, side(piece)[0][path])
        bounds[path] = best
        # The bound is exact if at least one piece really has this value.
        if all(path in side(piece)[1] for piece in known if side(piece)[0][path] == best):
            inexact.add(path)
    return bounds, frozenset(inexact)


def _has_no_value(piece: SplitStats, path: FieldPath) -> bool:
    """Returns True only if the column is known to be NULL or NaN in every row."""
    if piece.num_records is None:
        return False
    return piece.null_count.get(path, 0) + piece.nan_count.get(path, 0) == piece.num_records


def _counts(pieces: Sequence[Mapping[FieldPath, int]]) -> dict[FieldPath, int]:
    return {
        path: sum(piece[path] for piece in pieces)
        for path in pieces[0]
        if all(path in piece for piece in pieces)
    }
