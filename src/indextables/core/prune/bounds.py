"""Lower and upper bounds of all splits, ready to be compared with a set of values in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from indextables.core.domain.space import Ordinals
from indextables.core.domain.states import Cuts
from indextables.core.prune.arrays import FileMask, is_null, without
from indextables.core.prune.byte_line import ByteLine
from indextables.core.prune.ranks import Integers, Ladder

_WIDE: Final = 2**127
_FEW: Final = 4
"""So many intervals are compared one by one; more are searched for among the sorted bounds."""


@dataclass(slots=True)
class IntBounds:
    """Bounds as integers; an unknown side is the end of the type."""

    lo: Integers
    hi: Integers
    _sorted: tuple[Integers, Ladder] | None = field(default=None, init=False)

    def overlap(self, cuts: Cuts) -> FileMask:
        """True where some value between the bounds is in the set."""
        # The last cut of `long` is 2**63, which int64 has no room for: compare with closed ends.
        if len(cuts) > 2 * _FEW:
            return self._search(np.array(cuts[::2], np.int64), _closed(cuts))
        hit = np.zeros(len(self.lo), np.bool_)
        for start, end in zip(cuts[::2], cuts[1::2], strict=True):
            hit |= (self.lo <= end - 1) & (self.hi >= start)
        return hit

    def _search(self, starts: Integers, ends: Integers) -> FileMask:
        if self._sorted is None:
            order = np.argsort(self.lo)
            self._sorted = self.lo[order], Ladder(order, self.hi)
        lower, ladder = self._sorted
        return ladder.meets(np.searchsorted(lower, ends, side="right"), starts)


def _closed(cuts: Cuts) -> Integers:
    """The last value of each interval."""
    ends: Integers = np.array([*cuts[1:-1:2], cuts[-1] - 1], np.int64)
    ends[:-1] -= 1
    return ends


@dataclass(slots=True)
class ByteBounds:
    """Bounds as Arrow binaries; an unknown side is null."""

    lo: Any
    hi: Any
    wide: bool = False
    """The bytes are those of 128-bit integers, the cuts the integers."""
    _lines: tuple[ByteLine, ByteLine] | None = field(default=None, init=False)
    _ladder: Ladder | None = field(default=None, init=False)

    def overlap(self, cuts: Cuts) -> FileMask:
        """True where some value between the bounds is in the set."""
        line = tuple(_wide_bytes(cut) for cut in cuts) if self.wide else cuts
        if self._lines is None:
            self._lines = ByteLine.pair(self.lo, self.hi)
        lower, upper = self._lines
        starts, ends = line[::2], line[1::2]
        if len(starts) > _FEW:
            return self._search(lower, upper, starts, ends)
        hit = np.zeros(len(self.lo), np.bool_)
        for start, end in zip(starts, ends, strict=True):
            hit |= lower.below(end, unknown=True) & ~upper.below(start, unknown=False)
        return hit

    def _search(self, lower: ByteLine, upper: ByteLine, starts: Cuts, ends: Cuts) -> FileMask:
        # A lower bound that is unknown comes before all others, an upper bound after them.
        if self._ladder is None:
            self._ladder = Ladder(lower.order(), upper.ranks())
        starting = lower.unknown_count + lower.count_below(ends)
        return self._ladder.meets(starting, upper.count_below(starts))


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


def _wide_bytes(cut: int) -> bytes:
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
    return without(fixed.cast(pa.large_binary()), is_null(decimals))
