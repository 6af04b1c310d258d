"""Lower and upper bounds of all splits, ready to be compared with a set of values in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from indextables.core.arrays import FileMask, is_null, without
from indextables.core.pruning.byte_line import ByteLine
from indextables.core.pruning.ranks import Integers, Ranking
from indextables.core.sets.intervals import Cuts
from indextables.core.sets.space import Ordinals

_WIDE: Final = 2**127
_FEW: Final = 4
"""So many intervals are compared one by one; more are searched for among the sorted bounds."""


@dataclass(slots=True)
class IntBounds:
    """Bounds as integers; an unknown side is the end of the type."""

    lo: Integers
    hi: Integers
    _ranking: Ranking | None = field(default=None, init=False)

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
        """Only the first interval that does not end below `lo` can be hit: does it start by `hi`?"""
        if self._ranking is None:
            self._ranking = Ranking(self.lo)
        passed = self._ranking.count_below(ends)
        reached = starts[np.minimum(passed, len(starts) - 1)] <= self.hi
        return reached & (passed < len(starts))


@dataclass(slots=True)
class ByteBounds:
    """Bounds as Arrow binaries; an unknown side is null."""

    lo: Any
    hi: Any
    wide: bool = False
    """The bytes are those of 128-bit integers, the cuts the integers."""
    _lines: tuple[ByteLine, ByteLine] | None = field(default=None, init=False)

    def overlap(self, cuts: Cuts) -> FileMask:
        """True where some value between the bounds is in the set."""
        line = tuple(_wide_bytes(cut) for cut in cuts) if self.wide else cuts
        if self._lines is None:
            self._lines = ByteLine.pair(self.lo, self.hi)
        lower, upper = self._lines
        starts, ends = line[::2], line[1::2]
        if len(starts) > _FEW:
            passed = lower.count_at_most(ends, unknown=0)
            reached = upper.reaches(starts, np.minimum(passed, len(starts) - 1), unknown=True)
            return reached & (passed < len(starts))
        hit = np.zeros(len(self.lo), np.bool_)
        for start, end in zip(starts, ends, strict=True):
            hit |= lower.below(end, unknown=True) & ~upper.below(start, unknown=False)
        return hit


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
