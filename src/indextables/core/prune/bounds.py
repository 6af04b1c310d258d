"""Lower and upper bounds of all splits, ready to be compared with a set of values in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.expr.functions import Windows
from indextables.core.states import TOP, Cuts, Ordinals
from indextables.core.stats.columns import FileMask, as_mask, is_null, without

# Which of a million ranges meet a long list of intervals, without a million searches.
#
# Searching 10,000 intervals for each of a million splits costs 100 ms, most of it mispredicted branches.
# The other way round, each interval is searched once among the sorted lower bounds. Splits that stand
# between two of these places have one interval in question, the first that does not end below them, and
# whether they reach up to it is one comparison of two arrays.

Integers: TypeAlias = npt.NDArray[np.int64]
Positions: TypeAlias = npt.NDArray[np.intp]


class Ladder:
    """Splits in the order of their lower bounds, and how far up each reaches; sorting happens once."""

    def __init__(self, order: Positions, reach: npt.NDArray[np.integer]) -> None:
        self._rank = ranks(order)
        self._reach = reach[order]

    def meets(self, starting: Positions, reach: npt.NDArray[np.integer]) -> FileMask:
        """Returns which splits meet at least one of the intervals, which are in order and do not touch.

        `starting` says of each interval how many splits start below its end, `reach` how far up a
        split has to reach to meet it.
        """
        hit = np.zeros(len(self._rank), np.bool_)
        within = int(starting[-1])  # the splits after these start above every interval
        needed = np.repeat(reach, np.diff(starting, prepend=0))
        np.greater_equal(self._reach[:within], needed, out=hit[:within])
        return hit[self._rank]


def ranks(order: Positions) -> Positions:
    """Returns for each value its place in the order."""
    places = np.empty(len(order), np.intp)
    places[order] = np.arange(len(order))
    return places


# Many binaries compared with a few: by eight bytes as an integer first, exactly only where they tie.
#
# All values lie between the least and the greatest, so all begin with what these two have in common;
# the key of a value is the eight bytes after that stem. A smaller key is a smaller value. Only values
# with equal keys need to be looked at in full.

_KEY: Final = 8
_SIGN: Final = np.uint64(2**63)
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class ByteLine:
    """A column of binaries, null where unknown, and the order of their keys."""

    def __init__(self, values: Any, stem: bytes) -> None:
        self._values = values
        self._stem = stem
        self._unknown = is_null(values) if values.null_count else None
        self._keys = _keys(values, len(stem))
        self._sorted: tuple[Positions, Integers] | None = None

    @classmethod
    def pair(cls, lo: Any, hi: Any) -> tuple[ByteLine, ByteLine]:
        """Returns two columns that share a stem."""
        ends = [pc.min_max(column).as_py() for column in (lo, hi)]
        known = [end[which] for end in ends for which in ("min", "max") if end[which] is not None]
        stem = _common_stem(min(known), max(known)) if known else b""
        return cls(lo, stem), cls(hi, stem)

    def below(self, cut: Any, *, unknown: bool) -> FileMask:
        """Returns which values are less than the cut."""
        if cut is TOP:
            return np.ones(len(self._keys), np.bool_)
        wanted = pa.array([cut], pa.large_binary())
        place = self._places(wanted)[0]
        found = self._keys < place
        ties = np.flatnonzero(self._keys == place)
        if len(ties) > len(found) // 8:  # gathering that many costs more than comparing all
            found = as_mask(pc.less(self._values, wanted[0]))
        elif ties.size:
            found[ties] = as_mask(pc.less(self._values.take(pa.array(ties)), wanted[0]))
        return self._with_unknown(found, unknown)

    @property
    def unknown_count(self) -> int:
        """Returns how many values are unknown."""
        return int(self._values.null_count)

    def order(self) -> Positions:
        """Returns the values in their order, the unknown ones before all others."""
        unknown = () if self._unknown is None else np.flatnonzero(self._unknown)
        return np.concatenate([unknown, self._known_order()[0]]).astype(np.intp)

    def ranks(self) -> Positions:
        """Returns the place of each value in the order, the unknown ones after all others."""
        unknown = () if self._unknown is None else np.flatnonzero(self._unknown)
        return ranks(np.concatenate([self._known_order()[0], unknown]).astype(np.intp))

    def count_below(self, cuts: tuple[Any, ...]) -> Positions:
        """Returns for each of the cuts how many of the known values are below it."""
        order, keys = self._known_order()
        bounded = pa.array(cuts[:-1] if cuts[-1] is TOP else cuts, pa.large_binary())
        places = self._places(bounded)
        low = np.searchsorted(keys, places, "left")
        high = np.searchsorted(keys, places, "right")
        # Only values of the same key need to be compared in full.
        while (active := np.flatnonzero(low < high)).size:
            middle = (low[active] + high[active]) // 2
            here = self._values.take(pa.array(order[middle]))
            less = as_mask(pc.less(here, bounded.take(pa.array(active))))
            low[active[less]] = middle[less] + 1
            high[active[~less]] = middle[~less]
        return np.append(low, len(order)) if cuts[-1] is TOP else low

    def _known_order(self) -> tuple[Positions, Integers]:
        """Returns the known values in their order, and the keys in that order; found once."""
        if self._sorted is None:
            order = np.argsort(self._keys)
            if self._unknown is not None:
                order = order[~self._unknown[order]]
            keys = self._keys[order]
            same = keys[1:] == keys[:-1]
            ties = np.flatnonzero(np.append(same, False) | np.append(False, same))
            if ties.size:  # among themselves they are in the order of their keys already
                order[ties] = _sorted_rows(order[ties], self._values)
            self._sorted = order, keys
        return self._sorted

    def _places(self, cuts: Any) -> Integers:
        """Returns the keys of cuts; one that does not begin with the stem is beyond all values, at that end.

        Should the key of a value be that very end, they tie, and are compared in full like any other.
        """
        stem = pa.scalar(self._stem, pa.large_binary())
        inside = as_mask(pc.starts_with(cuts, pattern=self._stem))
        beyond = np.where(as_mask(pc.less(cuts, stem)), _LEAST, _MOST)
        places: Integers = np.where(inside, _keys(cuts, len(self._stem)), beyond)
        return places

    def _with_unknown(self, answers: FileMask, unknown: bool) -> FileMask:
        if self._unknown is not None:
            answers[self._unknown] = unknown
        return answers


def _common_stem(a: bytes, b: bytes) -> bytes:
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:same]


def _sorted_rows(rows: Positions, values: Any) -> Positions:
    """Returns the rows in the order of their values: each distinct value is compared with others only once."""
    encoded = values.take(pa.array(rows)).dictionary_encode()
    places = ranks(pc.sort_indices(encoded.dictionary).to_numpy().astype(np.intp))
    sorted_rows: Positions = rows[np.argsort(places[encoded.indices.to_numpy()], kind="stable")]
    return sorted_rows


def _keys(values: Any, skip: int) -> Integers:
    """Returns the eight bytes after the stem of each value, as an integer that sorts as they do."""
    _, offsets_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[values.offset :][: len(values) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    if len(data) < _KEY:
        data = np.concatenate([data, np.zeros(_KEY, np.uint8)])
    starts = offsets[:-1] + skip
    left = np.clip(offsets[1:] - starts, 0, _KEY)
    # Read eight bytes wherever there are eight; near the end of the buffer, earlier, and shift.
    at = np.clip(starts, 0, len(data) - _KEY)
    windows = np.lib.stride_tricks.sliding_window_view(data, _KEY)
    words = np.ascontiguousarray(windows[at]).view(">u8").ravel().astype(np.uint64)
    words = _shifted(words, np.clip(starts - at, 0, _KEY))
    rest = _KEY - left
    cleared = _shifted(words >> _bits(rest), rest)
    return (np.where(left > 0, cleared, np.uint64(0)) ^ _SIGN).view(np.int64)


def _bits(count: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    # A shift by all 64 bits is not defined; those values are empty and set to zero by the caller.
    return (np.minimum(count, _KEY - 1) * 8).astype(np.uint64)


def _shifted(words: npt.NDArray[np.uint64], count: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return words << _bits(count)


_WIDE: Final = 2**127
_FEW: Final = 4
"""Up to this many intervals are compared one by one; more are searched for among the sorted bounds."""


@dataclass(slots=True)
class IntBounds:
    """Bounds as integers; an unknown side is the end of the type."""

    lo: Integers
    hi: Integers
    _sorted: tuple[Integers, Ladder] | None = field(default=None, init=False)
    _ends: tuple[int, int] | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """Returns two ordinals between which all bounds lie."""
        if self._ends is None:
            self._ends = (int(self.lo.min()), int(self.hi.max())) if len(self.lo) else (0, -1)
        return self._ends

    def overlap(self, cuts: Cuts) -> FileMask:
        """Returns True where some value between the bounds is in the set."""
        # The last cut of `long` is 2**63, which int64 has no room for: compare with closed ends.
        if len(cuts) > 2 * _FEW:
            return self._search(np.array(cuts[::2], np.int64), _closed(cuts))
        hit = None
        least, most = self.ends
        for start, end in zip(cuts[::2], cuts[1::2], strict=True):
            if end > least and start <= most:
                touched = (self.lo <= end - 1) & (self.hi >= start)
                hit = touched if hit is None else hit | touched
        return np.zeros(len(self.lo), np.bool_) if hit is None else hit

    def _search(self, starts: Integers, ends: Integers) -> FileMask:
        if self._sorted is None:
            order = np.argsort(self.lo)
            self._sorted = self.lo[order], Ladder(order, self.hi)
        lower, ladder = self._sorted
        return ladder.meets(np.searchsorted(lower, ends, side="right"), starts)


def _closed(cuts: Cuts) -> Integers:
    """Returns the last value of each interval."""
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
        """Returns True where some value between the bounds is in the set."""
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
    """Returns typed bounds (`core.stats.values.index_type`) as ordinals of their space."""
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
    """Returns a fresh array of ordinals; whatever stands where the value is null means nothing."""
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
    """Returns the two 64-bit words of each 128-bit decimal, the low one first."""
    words = np.frombuffer(decimals.buffers()[1] or b"", np.int64)
    start = 2 * decimals.offset
    return words[start : start + 2 * len(decimals)].reshape(-1, 2)


def _wide_bytes(cut: int) -> bytes:
    """Returns sixteen bytes that sort as the 128-bit integer does."""
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


_MOST_WINDOWS: Final = 64


def windows_of(lo: Integers, hi: Integers) -> Windows:
    """Returns at most a few closed intervals that hold all these ranges, the widest gaps between them."""
    if not len(lo):
        return ()
    order = np.argsort(lo)
    starts, reach = lo[order], np.maximum.accumulate(hi[order])
    # in floats: the distance of two int64 may be none
    gaps = starts[1:].astype(np.float64) - reach[:-1].astype(np.float64)
    widest = np.argsort(gaps)[-(_MOST_WINDOWS - 1) :]
    cuts = np.sort(widest[starts[widest + 1] > reach[widest]])
    first = starts[np.append([0], cuts + 1)]
    return tuple(zip(first.tolist(), reach[np.append(cuts, [len(lo) - 1])].tolist(), strict=True))
