"""How many of a list of integers lie below each of a million others, without a million searches.

Searching 10,000 keys for each of a million values costs 100 ms, most of it mispredicted branches. The
other way round, each key is searched once among the sorted values, and the counts are spread back.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.int32]


class Ranking:
    """Values in sorted order, and where each of them came from; sorting happens once."""

    def __init__(self, values: Integers) -> None:
        self._order = np.argsort(values)
        self._sorted = values[self._order]

    def count_at_most(self, keys: Integers) -> Counts:
        """For each value, how many of the increasing keys are at or below it."""
        return self._spread(np.searchsorted(self._sorted, keys, side="left"))

    def count_below(self, keys: Integers) -> Counts:
        """For each value, how many of the increasing keys are below it."""
        return self._spread(np.searchsorted(self._sorted, keys, side="right"))

    def _spread(self, positions: npt.NDArray[np.intp]) -> Counts:
        steps = np.diff(positions, prepend=0, append=len(self._order))
        counts = np.empty(len(self._order), np.int32)
        counts[self._order] = np.repeat(np.arange(len(positions) + 1, dtype=np.int32), steps)
        return counts
