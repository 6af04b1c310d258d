"""What is known of one column in every split, with its different kinds of not knowing kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.core.prune.arrays import FileMask, as_array, is_null
from indextables.core.prune.partitions import read_partition
from indextables.core.prune.source import StatsSource
from indextables.core.prune.stored_bounds import read_bounds
from indextables.core.stats.values import index_type
from indextables.core.types import FieldPath, Leaf, is_float, is_orderable


@dataclass(frozen=True, slots=True, eq=False)
class ColumnStats:
    """What is known of one column in every split.

    `lo` and `hi` are Arrow arrays of `core.values.index_type`; null means that side is unknown. A
    mask is False only where the statistics prove it. An exact bound is a value of the column.
    """

    lo: Any
    hi: Any
    may_null: FileMask
    may_nan: FileMask
    may_value: FileMask
    lo_exact: FileMask
    hi_exact: FileMask
    missing: FileMask
    """True where the statistics that a condition on this column needs are not there."""


@dataclass(frozen=True, slots=True, eq=False)
class Presence:
    """Which kinds of state the counts leave possible; `unknown` where there is no count of NULLs."""

    may_null: FileMask
    may_nan: FileMask
    may_value: FileMask
    unknown: FileMask


def read_presence(source: StatsSource, path: FieldPath, *, has_nan: bool) -> Presence:
    """What the counts say; one that is negative or above the number of rows says nothing."""
    records = integers(source.num_records(), source.num_rows)
    null = _believable(integers(source.count("null", path), source.num_rows), records)
    nan = np.zeros_like(null)
    if has_nan:
        nan = _believable(integers(source.count("nan", path), source.num_rows), records)
    too_many = (records >= 0) & (null >= 0) & (nan > records - null)
    null, nan = np.where(too_many, -1, null), np.where(too_many, -1, nan)
    all_null, all_nan = (null == records) & (null >= 0), (nan == records) & (nan > 0)
    full = (records >= 0) & (null >= 0) & (nan >= 0) & (nan == records - null)
    may_nan = (nan != 0) & ~all_null
    presence = Presence((null != 0) & ~all_nan, may_nan, ~(full | all_null | all_nan), null < 0)
    return _with_absent(presence, source.absent(path))


def integers(column: Any | None, count: int) -> npt.NDArray[np.int64]:
    """Counts as integers, -1 where unknown."""
    if column is None:
        return np.full(count, -1, np.int64)
    return as_array(column).fill_null(-1).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _believable(counts: npt.NDArray[np.int64], records: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.where((counts < 0) | ((records >= 0) & (counts > records)), -1, counts)


def _with_absent(presence: Presence, absent: FileMask | None) -> Presence:
    """A column newer than the split is NULL in all of its rows, and that is known."""
    if absent is None:
        return presence
    return Presence(
        presence.may_null | absent,
        presence.may_nan & ~absent,
        presence.may_value & ~absent,
        presence.unknown & ~absent,
    )


def load_leaf(source: StatsSource, leaf: Leaf) -> ColumnStats:
    """The statistics of a column that holds values of its own."""
    presence = read_presence(source, leaf.path, has_nan=is_float(leaf.type))
    if not is_orderable(leaf.type, leaf.field.metadata):
        return _without_bounds(presence, index_type(leaf.type))
    lower, upper = read_bounds(source, leaf.path, leaf.type)
    absent = source.absent(leaf.path)
    if absent is not None:
        # Bounds under the name of a column that was dropped and added again are another column's.
        lower, upper = lower.without(absent), upper.without(absent)
    has_lower, has_upper = ~is_null(lower.values), ~is_null(upper.values)
    # Counts that leave no room for a value, and yet a bound: one of them lies, so neither is proof.
    may_value = presence.may_value | has_lower | has_upper
    return ColumnStats(
        lower.values,
        upper.values,
        presence.may_null,
        presence.may_nan,
        may_value,
        lower.exact,
        upper.exact,
        missing=may_value & ~has_lower & ~has_upper,
    )


def _without_bounds(presence: Presence, dtype: pa.DataType) -> ColumnStats:
    count = len(presence.may_null)
    unknown, nowhere = pa.nulls(count, dtype), np.zeros(count, np.bool_)
    return ColumnStats(
        unknown,
        unknown,
        presence.may_null,
        nowhere,
        presence.may_value,
        nowhere,
        nowhere,
        missing=presence.unknown,
    )


def load_struct(source: StatsSource, path: FieldPath, inside: Sequence[Leaf]) -> ColumnStats:
    """The statistics of a struct itself: only whether it is NULL.

    A NULL struct makes every field in it NULL, so one field without NULLs proves there is none. The
    reverse proves nothing: a struct whose fields are all NULL need not be NULL.
    """
    own = read_presence(source, path, has_nan=False)
    may_null, unknown = own.may_null.copy(), own.unknown.copy()
    for leaf in inside:
        fields = read_presence(source, leaf.path, has_nan=is_float(leaf.type))
        may_null &= fields.may_null
        unknown &= fields.may_null
    presence = Presence(may_null, np.zeros_like(may_null), own.may_value, unknown)
    return _without_bounds(presence, pa.null())


def load_partition(source: StatsSource, leaf: Leaf) -> ColumnStats:
    """The statistics of a partition column: both bounds are the one value."""
    found = read_partition(source.partition_value(leaf.path[0]), leaf.type)
    exact = ~is_null(found.values)
    nowhere = np.zeros_like(exact)
    masks = (found.may_null, found.may_nan, found.may_value)
    return ColumnStats(found.values, found.values, *masks, exact, exact, missing=nowhere)
