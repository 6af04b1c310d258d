"""Many binaries compared with a few: by eight bytes as an integer first, exactly only where they tie.

All values lie between the least and the greatest, so all begin with what these two have in common;
the key of a value is the eight bytes after that stem. A smaller key is a smaller value. Only values
with equal keys need to be looked at in full.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.arrays import FileMask, as_mask, is_null
from indextables.core.pruning.ranks import Counts, Integers, Ranking
from indextables.core.sets.intervals import TOP

_KEY: Final = 8
_SIGN: Final = np.uint64(2**63)
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_Answers = TypeVar("_Answers", FileMask, Counts)


class ByteLine:
    """A column of binaries, null where unknown, and the order of their keys."""

    def __init__(self, values: Any, stem: bytes) -> None:
        self._values = values
        self._stem = stem
        self._unknown = is_null(values) if values.null_count else None
        self._keys = _keys(values, len(stem))
        self._ranking: Ranking | None = None

    @classmethod
    def pair(cls, lo: Any, hi: Any) -> tuple[ByteLine, ByteLine]:
        """Two columns that share a stem."""
        ends = [pc.min_max(column).as_py() for column in (lo, hi)]
        known = [end[which] for end in ends for which in ("min", "max") if end[which] is not None]
        stem = _common_stem(min(known), max(known)) if known else b""
        return cls(lo, stem), cls(hi, stem)

    def below(self, cut: Any, *, unknown: bool) -> FileMask:
        """Which values are less than the cut."""
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

    def count_at_most(self, cuts: tuple[Any, ...], *, unknown: int) -> Counts:
        """For each value, how many of the increasing cuts are at or below it."""
        wanted = pa.array(cuts[:-1] if cuts[-1] is TOP else cuts, pa.large_binary())
        places = self._places(wanted)
        if self._ranking is None:
            self._ranking = Ranking(self._keys)
        counts = self._ranking.count_at_most(places)
        at = np.maximum(counts - 1, 0)
        ties = np.flatnonzero((counts > 0) & (places[at] == self._keys))
        counts[ties] = self._bisect(ties, places, wanted)
        return self._with_unknown(counts, unknown)

    def reaches(self, cuts: tuple[Any, ...], which: Counts, *, unknown: bool) -> FileMask:
        """For each value, whether it is at or above the one of the cuts that `which` names."""
        wanted = pa.array(cuts, pa.large_binary())
        places = self._places(wanted)[which]
        found = self._keys > places
        ties = np.flatnonzero(self._keys == places)
        exact = pc.greater_equal(self._values.take(pa.array(ties)), wanted.take(pa.array(which[ties])))
        found[ties] = as_mask(exact)
        return self._with_unknown(found, unknown)

    def _places(self, cuts: Any) -> Integers:
        """The keys of cuts; one that does not begin with the stem is beyond all values, at that end.

        Should the key of a value be that very end, they tie, and are compared in full like any other.
        """
        stem = pa.scalar(self._stem, pa.large_binary())
        inside = as_mask(pc.starts_with(cuts, pattern=self._stem))
        beyond = np.where(as_mask(pc.less(cuts, stem)), _LEAST, _MOST)
        places: Integers = np.where(inside, _keys(cuts, len(self._stem)), beyond)
        return places

    def _bisect(self, rows: Any, places: Integers, cuts: Any) -> Integers:
        """How many cuts are at or below each of these values, searched among the cuts of its key."""
        keys, values = self._keys[rows], self._values.take(pa.array(rows))
        low: Integers = np.searchsorted(places, keys, "left")
        high = np.searchsorted(places, keys, "right")
        while (active := np.flatnonzero(low < high)).size:
            middle = (low[active] + high[active]) // 2
            here = values.take(pa.array(active))
            reached = as_mask(pc.less_equal(cuts.take(pa.array(middle)), here))
            low[active[reached]] = middle[reached] + 1
            high[active[~reached]] = middle[~reached]
        return low

    def _with_unknown(self, answers: _Answers, unknown: int) -> _Answers:
        if self._unknown is not None:
            answers[self._unknown] = unknown
        return answers


def _common_stem(a: bytes, b: bytes) -> bytes:
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:same]


def _keys(values: Any, skip: int) -> Integers:
    """The eight bytes after the stem of each value, as an integer that sorts as they do."""
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
