"""What is known of one column in every split, with its different kinds of not knowing kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.expr.functions import Windows
from indextables.core.prune.bounds import Bounds, IntBounds, bounds_of, windows_of
from indextables.core.prune.partitions import read_partition
from indextables.core.states import Ordinals, space_of
from indextables.core.stats.columns import (
    FileMask,
    ListSource,
    StatsSource,
    as_array,
    as_mask,
    is_null,
    source_of,
    without,
)
from indextables.core.stats.truncation_options import lower_bounds, marked, upper_bounds
from indextables.core.stats.values import decode_column, index_type
from indextables.core.types import (
    DataType,
    FieldPath,
    Leaf,
    PrimitiveType,
    is_float,
    is_orderable,
    leaves,
    resolve,
)

__all__ = ["ColumnStats", "ColumnStatsIndex", "FileMask", "ListSource", "StatsSource", "source_of"]


# Bounds as they are stored, read so that they are true: no value of the split lies outside.

_SUB_MILLISECOND: Final = 999
_INSTANTS: Final = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))


class Side(NamedTuple):
    """One bound of every split, null where it is unknown, and where it is a value of the column."""

    values: Any
    exact: FileMask

    def without(self, rows: FileMask) -> Side:
        """Returns the same bounds with those of some splits forgotten."""
        return Side(without(self.values, rows), self.exact & ~rows)


def read_bounds(source: StatsSource, path: FieldPath, dtype: DataType) -> tuple[Side, Side]:
    """Returns both bounds of a column; a pair that cannot be true (min above max, NaN) is unknown."""
    lower, upper = _read(source, "min", path, dtype), _read(source, "max", path, dtype)
    lies = as_mask(pc.greater(lower.values, upper.values))
    for which in ("min", "max") if is_float(dtype) else ():
        lies = lies | _is_nan(source.bound(which, path), len(lies))
    return lower.without(lies), upper.without(lies)


def _is_nan(wire: Any, count: int) -> FileMask:
    # A writer whose comparison NaN has spoiled is not to be trusted about the other bound either.
    if wire is None or not pa.types.is_floating(wire.type):
        return np.zeros(count, np.bool_)
    return as_mask(pc.is_nan(as_array(wire)))


def _read(source: StatsSource, which: Literal["min", "max"], path: FieldPath, dtype: DataType) -> Side:
    wire = source.bound(which, path)
    if wire is None:
        return Side(pa.nulls(source.num_rows, index_type(dtype)), np.zeros(source.num_rows, np.bool_))
    wire, inexact = as_array(wire), source.inexact(which, path)
    listed = np.zeros(len(wire), np.bool_) if inexact is None else inexact
    if dtype == PrimitiveType("string"):
        return _read_text(wire, listed, which)
    values = decode_column(wire, dtype, "down" if which == "min" else "up")
    exact = ~is_null(values) & ~listed
    if dtype in _INSTANTS:
        return _widen_milliseconds(Side(values, exact), wire, which)
    if is_float(dtype) and pa.types.is_floating(wire.type):
        # Rounded outward: a bound still, but no value of the column.
        exact &= as_mask(pc.equal(values, wire.cast(pa.float64())))
    return Side(values, exact)


def _read_text(wire: Any, listed: FileMask, which: Literal["min", "max"]) -> Side:
    cut = marked(wire) | listed
    read = lower_bounds(wire, listed) if which == "min" else upper_bounds(wire, listed)
    values = decode_column(read, PrimitiveType("string"), "down")
    return Side(values, ~is_null(values) & ~cut)


def _widen_milliseconds(side: Side, wire: Any, which: Literal["min", "max"]) -> Side:
    """Widens bounds of timestamps that Delta has cut to milliseconds: the real value is up to 999 µs away.

    A cut towards zero lowers a maximum, but raises a minimum before 1970: so both sides give way.
    """
    # Of our own, every text has six digits after the point: …T00:00:00.000000, and perhaps a Z.
    coarse = as_mask(pc.match_substring_regex(wire, r"\.\d{1,5}(\D|$)"))
    if not coarse.any():
        return side
    shift = -_SUB_MILLISECOND if which == "min" else _SUB_MILLISECOND
    moved = pc.if_else(pa.array(coarse), pc.add(side.values, shift), side.values)
    return Side(moved, side.exact & ~coarse)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnStats:
    """What is known of one column in every split.

    `lo` and `hi` are Arrow arrays of `core.stats.values.index_type`; null means that side is unknown. A
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
    """Returns what the counts say; one that is negative or above the number of rows says nothing."""
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
    """Returns a column newer than the split is NULL in all of its rows, and that is known."""
    if absent is None:
        return presence
    return Presence(
        presence.may_null | absent,
        presence.may_nan & ~absent,
        presence.may_value & ~absent,
        presence.unknown & ~absent,
    )


def load_leaf(source: StatsSource, leaf: Leaf) -> ColumnStats:
    """Returns the statistics of a column that holds values of its own."""
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
    """Returns the statistics of a struct itself: only whether it is NULL.

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
    """Returns the statistics of a partition column: both bounds are the one value."""
    found = read_partition(source.partition_value(leaf.path[0]), leaf.type)
    exact = ~is_null(found.values)
    nowhere = np.zeros_like(exact)
    masks = (found.may_null, found.may_nan, found.may_value)
    return ColumnStats(found.values, found.values, *masks, exact, exact, missing=nowhere)


# The column statistics index: typed arrays per column, decoded for the columns that are asked for.


class ColumnStatsIndex:
    """Statistics of all splits by column; a column that nobody asks for is never decoded."""

    def __init__(self, source: StatsSource) -> None:
        self.source = source
        self._leaves: dict[FieldPath, Leaf] = {leaf.path: leaf for leaf in leaves(source.schema)}
        self._columns: dict[FieldPath, ColumnStats] = {}
        self._bounds: dict[FieldPath, Bounds] = {}
        self._spaces: dict[FieldPath, Ordinals] = {}
        self._windows: dict[FieldPath, Windows | None] = {}
        self._may_have_rows: FileMask | None = None

    @property
    def num_rows(self) -> int:
        """Returns the number of splits."""
        return self.source.num_rows

    @property
    def may_have_rows(self) -> FileMask:
        """Returns False where a split is known to be empty."""
        if self._may_have_rows is None:
            self._may_have_rows = integers(self.source.num_records(), self.num_rows) != 0
        return self._may_have_rows

    def is_partition(self, path: FieldPath) -> bool:
        """Returns whether all rows of a split have one known value in this column."""
        return len(path) == 1 and path[0] in self.source.partition_columns

    def space(self, path: FieldPath) -> Ordinals:
        """Returns the space the column's values are compared in."""
        if path not in self._spaces:
            leaf = self._leaves.get(path)
            self._spaces[path] = (
                space_of(resolve(self.source.schema, path, case_sensitive=True)[1])
                if leaf is None
                else space_of(leaf.type, leaf.field.metadata)
            )
        return self._spaces[path]

    def column(self, path: FieldPath) -> ColumnStats:
        """Returns the column's statistics, decoded once."""
        if path not in self._columns:
            self._columns[path] = self._load(path)
        return self._columns[path]

    def _load(self, path: FieldPath) -> ColumnStats:
        leaf = self._leaves.get(path)
        if leaf is None:
            resolve(self.source.schema, path, case_sensitive=True)
            inside = [leaf for leaf in self._leaves.values() if leaf.path[: len(path)] == path]
            return load_struct(self.source, path, inside)
        return (load_partition if self.is_partition(path) else load_leaf)(self.source, leaf)

    def windows(self, path: FieldPath) -> Windows | None:
        """Returns between which ordinals the known bounds of a column lie, found once; None for text."""
        if path not in self._windows:
            self._windows[path] = self._find_windows(path)
        return self._windows[path]

    def _find_windows(self, path: FieldPath) -> Windows | None:
        stats, bounds = self.column(path), self.bounds(path)
        if not isinstance(bounds, IntBounds):
            return None
        known = stats.may_value & ~is_null(stats.lo) & ~is_null(stats.hi)
        return windows_of(bounds.lo[known], bounds.hi[known])

    def bounds(self, path: FieldPath) -> Bounds:
        """Returns the column's bounds as ordinals, made once."""
        if path not in self._bounds:
            stats = self.column(path)
            self._bounds[path] = bounds_of(stats.lo, stats.hi, self.space(path))
        return self._bounds[path]
