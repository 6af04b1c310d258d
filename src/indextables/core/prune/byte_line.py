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

from indextables.core.domain.states import TOP
from indextables.core.prune.arrays import FileMask, as_mask, is_null
from indextables.core.prune.ranks import Integers, Positions, ranks

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

    @property
    def unknown_count(self) -> int:
        """How many values are unknown."""
        return int(self._values.null_count)

    def order(self) -> Positions:
        """The values in their order, the unknown ones before all others."""
        unknown = () if self._unknown is None else np.flatnonzero(self._unknown)
        return np.concatenate([unknown, self._known_order()[0]]).astype(np.intp)

    def ranks(self) -> Positions:
        """The place of each value in the order, the unknown ones after all others."""
        unknown = () if self._unknown is None else np.flatnonzero(self._unknown)
        return ranks(np.concatenate([self._known_order()[0], unknown]).astype(np.intp))

    def count_below(self, cuts: tuple[Any, ...]) -> Positions:
        """For each of the cuts, how many of the known values are below it."""
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
        """The known values in their order, and the keys in that order; found once."""
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
        """The keys of cuts; one that does not begin with the stem is beyond all values, at that end.

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
    """The rows in the order of their values: each distinct value is compared with others only once."""
    encoded = values.take(pa.array(rows)).dictionary_encode()
    places = ranks(pc.sort_indices(encoded.dictionary).to_numpy().astype(np.intp))
    sorted_rows: Positions = rows[np.argsort(places[encoded.indices.to_numpy()], kind="stable")]
    return sorted_rows


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
