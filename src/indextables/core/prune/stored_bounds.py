"""Bounds as they are stored, read so that they are true: no value of the split lies outside."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.arrays import FileMask, as_array, as_mask, is_null, without
from indextables.core.prune.source import StatsSource
from indextables.core.stats.truncation_options import lower_bounds, marked, upper_bounds
from indextables.core.stats.values import decode_column, index_type
from indextables.core.types import DataType, FieldPath, PrimitiveType, is_float

_SUB_MILLISECOND: Final = 999
_INSTANTS: Final = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))


class Side(NamedTuple):
    """One bound of every split, null where it is unknown, and where it is a value of the column."""

    values: Any
    exact: FileMask

    def without(self, rows: FileMask) -> Side:
        """The same bounds with those of some splits forgotten."""
        return Side(without(self.values, rows), self.exact & ~rows)


def read_bounds(source: StatsSource, path: FieldPath, dtype: DataType) -> tuple[Side, Side]:
    """Both bounds of a column; a pair that cannot be true (min above max, NaN) is unknown."""
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
    """Delta stores timestamps cut to milliseconds: the real value is up to 999 µs away.

    A cut towards zero lowers a maximum, but raises a minimum before 1970: so both sides give way.
    """
    # Of our own, every text has six digits after the point: …T00:00:00.000000, and perhaps a Z.
    coarse = as_mask(pc.match_substring_regex(wire, r"\.\d{1,5}(\D|$)"))
    if not coarse.any():
        return side
    shift = -_SUB_MILLISECOND if which == "min" else _SUB_MILLISECOND
    moved = pc.if_else(pa.array(coarse), pc.add(side.values, shift), side.values)
    return Side(moved, side.exact & ~coarse)
