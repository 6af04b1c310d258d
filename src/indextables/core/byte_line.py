"""Many binaries compared with a few: by eight bytes as an integer first, exactly only where they tie.

All values lie between the least and the greatest, so all begin with what these two have in common;
the key of a value is the eight bytes after that stem. A smaller key is a smaller value. Only values
with equal keys need to be looked at in full.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.arrays import FileMask, as_mask, is_null
from indextables.core.intervals import TOP
from indextables.core.ranks import Integers, Ranking

_KEY: Final = 8
_SIGN: Final = np.uint64(2**63)


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
        key = self._key(cut)
        if isinstance(key, bool):
            found = np.full(len(self._keys), key)
        else:
            found = self._keys < key
            ties = np.flatnonzero(self._keys == key)
            self._compare_ties(found, ties, pa.scalar(cut, pa.large_binary()))
        if self._unknown is not None:
            found[self._unknown] = unknown
        return found

    def _compare_ties(self, found: FileMask, ties: npt.NDArray[np.intp], cut: Any) -> None:
        if len(ties) > len(found) // 8:  # gathering that many costs more than comparing all
            found[:] = as_mask(pc.less(self._values, cut))
        elif ties.size:
            found[ties] = as_mask(pc.less(self._values.take(pa.array(ties)), cut))

    def count_at_most(self, cuts: tuple[Any, ...], *, unknown: int) -> Integers:
        """For each value, how many of the increasing cuts are at or below it."""
        keys = [self._key(cut) for cut in cuts]
        # False: no value is below this cut, so it counts everywhere; True: it counts nowhere.
        always = sum(key is False for key in keys)
        inside = [i for i, key in enumerate(keys) if not isinstance(key, bool)]
        places = np.array([keys[i] for i in inside], np.int64)
        if self._ranking is None:
            self._ranking = Ranking(self._keys)
        counts = self._ranking.count_at_most(places)
        if inside:
            self._break_ties(counts, places, pa.array([cuts[i] for i in inside], pa.large_binary()))
        counts += always
        if self._unknown is not None:
            counts[self._unknown] = unknown
        return counts

    def _key(self, cut: Any) -> int | bool:
        """The key of a cut; or, where it does not begin with the stem, whether all values are below."""
        if cut is TOP:
            return True
        if not cut.startswith(self._stem):
            return bool(cut > self._stem)
        head = cut[len(self._stem) :][:_KEY].ljust(_KEY, b"\0")
        return int.from_bytes(head, "big") - 2**63

    def _break_ties(self, counts: Integers, places: Integers, cuts: Any) -> None:
        """Corrects the counts of values whose key is also a cut's: bisects among the cuts of that key."""
        at = np.maximum(counts - 1, 0)
        ties = np.flatnonzero((counts > 0) & (places[at] == self._keys))
        if not ties.size:
            return
        keys, values = self._keys[ties], self._values.take(pa.array(ties))
        low, high = np.searchsorted(places, keys, "left"), np.searchsorted(places, keys, "right")
        while (active := np.flatnonzero(low < high)).size:
            middle = (low[active] + high[active]) // 2
            reached = as_mask(pc.less_equal(cuts.take(pa.array(middle)), values.take(pa.array(active))))
            low[active[reached]] = middle[reached] + 1
            high[active[~reached]] = middle[~reached]
        counts[ties] = low


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
