"""Lower and upper bounds of all splits, ready to be compared with a set of values in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.arrays import FileMask, as_mask, is_null, without
from indextables.core.intervals import TOP, Cuts
from indextables.core.space import Ordinals

Integers: TypeAlias = npt.NDArray[np.int64]
_WIDE: Final = 2**127
_FEW: Final = 4
"""So many intervals are compared one by one, whatever else is at hand."""
_SOME: Final = 32
"""So many intervals are not worth sorting the bounds of a text column for."""


@dataclass(slots=True)
class Sorted:
    """One side of the bounds in sorted order, and where each split stands in it."""

    order: npt.NDArray[np.int64]
    values: Any

    def ranks(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """For each split, how many of the (increasing) positions it has reached."""
        count = len(self.order)
        steps = np.diff(positions, prepend=0, append=count)
        ranks = np.empty(count, np.int64)
        ranks[self.order] = np.repeat(np.arange(len(positions) + 1), steps)
        return ranks


@dataclass(slots=True)
class IntBounds:
    """Bounds as integers; an unknown side is the end of the type."""

    lo: Integers
    hi: Integers
    _sorted: tuple[Sorted, Sorted] | None = field(default=None, init=False)

    def overlap(self, cuts: Cuts) -> FileMask:
        """True where some value between the bounds is in the set."""
        # The last cut of `long` is 2**63, which int64 has no room for: compare with closed ends.
        starts, ends = cuts[::2], [end - 1 for end in cuts[1::2]]
        if len(starts) > _FEW:
            return self._search(np.array(starts, np.int64), np.array(ends, np.int64))
        hit = np.zeros(len(self.lo), np.bool_)
        for start, end in zip(starts, ends, strict=True):
            hit |= (self.lo <= end) & (self.hi >= start)
        return hit

    def _search(self, starts: Integers, ends: Integers) -> FileMask:
        if self._sorted is None:
            self._sorted = (_sort_integers(self.lo), _sort_integers(self.hi))
        lower, upper = self._sorted
        passed = lower.ranks(np.searchsorted(lower.values, ends, side="right"))
        reached = upper.ranks(np.searchsorted(upper.values, starts, side="left"))
        return reached > passed


def _sort_integers(values: Integers) -> Sorted:
    order = np.argsort(values)
    return Sorted(order, values[order])


@dataclass(slots=True)
class ByteBounds:
    """Bounds as Arrow binaries; an unknown side is null."""

    lo: Any
    hi: Any
    wide: bool = False
    """The bytes are those of 128-bit integers, the cuts the integers."""
    _sorted: tuple[Sorted, Sorted] | None = field(default=None, init=False)

    def overlap(self, cuts: Cuts) -> FileMask:
        """True where some value between the bounds is in the set."""
        line = tuple(wide_bytes(cut) for cut in cuts) if self.wide else cuts
        few = _FEW if self._sorted is not None else _SOME
        if len(line) > 2 * few:
            return self._search(line[::2], line[1::2])
        hit = np.zeros(len(self.lo), np.bool_)
        for start, end in zip(line[::2], line[1::2], strict=True):
            hit |= self._between(start, end)
        return hit

    def _between(self, start: bytes, end: Any) -> FileMask:
        reached = as_mask(pc.greater_equal(self.hi, pa.scalar(start, pa.large_binary())), unknown=True)
        if end is not TOP:
            reached &= as_mask(pc.less(self.lo, pa.scalar(end, pa.large_binary())), unknown=True)
        return reached

    def _search(self, starts: tuple[Any, ...], ends: tuple[Any, ...]) -> FileMask:
        if self._sorted is None:
            self._sorted = (_sort_bytes(self.lo, "at_start"), _sort_bytes(self.hi, "at_end"))
        lower, upper = self._sorted
        unknown_lo, known_hi = self.lo.null_count, len(self.hi) - self.hi.null_count
        passed = lower.ranks(_first_at_least(lower.values.slice(unknown_lo), ends) + unknown_lo)
        reached = upper.ranks(_first_at_least(upper.values.slice(0, known_hi), starts))
        return reached > passed


def _sort_bytes(values: Any, unknown: str) -> Sorted:
    order = pc.sort_indices(values, null_placement=unknown)
    return Sorted(order.to_numpy().astype(np.int64), values.take(order))


def _first_at_least(values: Any, wanted: tuple[Any, ...]) -> npt.NDArray[np.int64]:
    """Where each wanted value would be inserted into sorted binaries: one bisection for all of them."""
    low = np.zeros(len(wanted), np.int64)
    high = np.full(len(wanted), len(values), np.int64)
    endless = np.array([value is TOP for value in wanted], np.bool_)
    low[endless] = len(values)
    needles = pa.array([b"" if value is TOP else value for value in wanted], pa.large_binary())
    while (active := np.flatnonzero(low < high)).size:
        middle = (low[active] + high[active]) // 2
        less = as_mask(
            pc.less(values.take(pa.array(middle)), needles.take(pa.array(active))), unknown=False
        )
        low[active[less]] = middle[less] + 1
        high[active[~less]] = middle[~less]
    return low


Bounds: TypeAlias = IntBounds | ByteBounds


def bounds_of(lo: Any, hi: Any, space: Ordinals) -> Bounds:
    """Typed bounds (`core.values.index_type`) as ordinals of their space."""
    if space.kind == "unordered":
        zeros = np.zeros(len(lo), np.int64)
        return IntBounds(zeros, zeros)
    if space.kind == "bytes":
        return ByteBounds(lo.cast(pa.large_binary()), hi.cast(pa.large_binary()))
    if space.kind == "decimal" and space.universe[1] > 2**63:
        return ByteBounds(_wide_column(lo), _wide_column(hi), wide=True)
    first, last = space.universe
    return IntBounds(_integers(lo, space, first), _integers(hi, space, last - 1))


def _integers(values: Any, space: Ordinals, unknown: int) -> Integers:
    ordinals = _ordinals(values, space)
    if values.null_count:
        ordinals[is_null(values)] = unknown
    return ordinals


def _ordinals(values: Any, space: Ordinals) -> Integers:
    """A fresh array of ordinals; whatever stands where the value is null means nothing."""
    if space.kind == "single":
        singles = values.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float32)
        return _sortable((singles + np.float32(0)).view(np.int32).astype(np.int64), 2**31 - 1)
    if space.kind == "double":
        doubles = values.fill_null(0.0).to_numpy(zero_copy_only=False)
        return _sortable((doubles + 0.0).view(np.int64), 2**63 - 1)
    if space.kind == "decimal":
        return _words(values)[:, 0].copy()
    return np.array(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _sortable(bits: Integers, magnitude: int) -> Integers:
    return np.where(bits < 0, -(bits & magnitude), bits)


def _words(decimals: Any) -> Integers:
    """The two 64-bit words of each 128-bit decimal, the low one first."""
    words = np.frombuffer(decimals.buffers()[1] or b"", np.int64)
    start = 2 * decimals.offset
    return words[start : start + 2 * len(decimals)].reshape(-1, 2)


def wide_bytes(cut: int) -> bytes:
    """Sixteen bytes that sort as the 128-bit integer does."""
    return (cut + _WIDE).to_bytes(16, "big")


def _wide_column(decimals: Any) -> Any:
    words = _words(decimals)
    out = np.empty((len(decimals), 2), ">u8")
    out[:, 0] = words[:, 1].view(np.uint64) ^ np.uint64(2**63)
    out[:, 1] = words[:, 0].view(np.uint64)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(decimals), [None, pa.py_buffer(out.tobytes())]
    )
    column = fixed.cast(pa.large_binary())
    return without(column, is_null(decimals))
