"""Statistics computed from Arrow data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import FAST_FIELDS, NUM_INDEXED_COLS, STATS_COLUMNS, Config, Option
from indextables.core.stats.split_stats_split_stats import SplitStats
from indextables.core.stats.wire import Physical
from indextables.core.types.arrow import type_to_arrow
from indextables.core.types.columns import Leaf, leaves, parse_path, resolve
from indextables.core.types.types import (
    DataType,
    FieldPath,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
)
from indextables.errors import ConfigError, UnknownColumnError

_Range: TypeAlias = tuple[Physical | None, Physical | None]

# 64-bit offsets: a dictionary that decodes to more than 2 GiB of text must not overflow.
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
    """The leaves that get statistics, in the schema's order; ConfigError for a name that is none."""
    candidates = [leaf.path for leaf in leaves(schema) if leaf.path[0] not in set(partition_columns)]
    named, always = config.get(STATS_COLUMNS), config.get(FAST_FIELDS)
    limit = config.get(NUM_INDEXED_COLS)
    if named:
        chosen = _below(schema, STATS_COLUMNS, named)
    else:
        chosen = set(candidates if limit < 0 else candidates[:limit])
    chosen |= _below(schema, FAST_FIELDS, always)
    return tuple(path for path in candidates if path in chosen)


def _below(schema: StructType, option: Option[Any], names: Sequence[str]) -> set[FieldPath]:
    """The named leaves, and all leaves of a named struct."""
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
    """Exact counts for these leaves, and exact bounds for those of them that have an order.

    A column the data lacks is NULL in every row: that is how every reader fills it.
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


def _column(data: pa.Table | pa.RecordBatch, leaf: Leaf) -> Any | None:
    """The values of a leaf, NULL where a struct around it is; None if the data lacks it."""
    path = leaf.path
    if path[0] not in data.schema.names:
        return None
    values = data.column(path[0])
    for name in path[1:]:
        if values.type.get_field_index(name) < 0:
            return None
        # Not StructArray.field: that one shows what lies under a NULL struct.
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    if not is_orderable(leaf.type, leaf.field.metadata):
        return values
    # Also decodes a dictionary, which may hold NULL itself where null_count does not see it.
    return values.cast(_WIDE.get(leaf.type) or type_to_arrow(leaf.type))


def _nan_count(values: Any) -> int:
    return int(pc.sum(pc.is_nan(values)).as_py() or 0)


def _range(values: Any, dtype: DataType) -> _Range:
    """The least and the greatest value, physical; None where there is none."""
    found = pc.min_max(values)
    return _physical(found["min"], dtype), _physical(found["max"], dtype)


def _physical(value: Any, dtype: DataType) -> Physical | None:
    if dtype in _COUNTED:
        # as_py() of a year outside 1-9999 raises.
        value = value.cast(_COUNTED[dtype])
    try:
        plain: Physical | None = value.as_py()
    except UnicodeDecodeError:  # a string column can hold bytes that are no text
        return None
    # Arrow passes over NaN, unless there is nothing else.
    return None if plain != plain else plain  # noqa: PLR0124
