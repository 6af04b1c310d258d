"""Which of a million ranges meet a long list of intervals, without a million searches.

Searching 10,000 intervals for each of a million splits costs 100 ms, most of it mispredicted branches.
The other way round, each interval is searched once among the sorted lower bounds. Splits that stand
between two of these places have one interval in question, the first that does not end below them, and
whether they reach up to it is one comparison of two arrays.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from indextables.core.prune.arrays import FileMask

Integers: TypeAlias = npt.NDArray[np.int64]
Positions: TypeAlias = npt.NDArray[np.intp]


class Ladder:
    """Splits in the order of their lower bounds, and how far up each reaches; sorting happens once."""

    def __init__(self, order: Positions, reach: npt.NDArray[np.integer]) -> None:
        self._rank = ranks(order)
        self._reach = reach[order]

    def meets(self, starting: Positions, reach: npt.NDArray[np.integer]) -> FileMask:
        """Which splits meet one of the intervals at least, these being apart and in their order.

        `starting` says of each interval how many splits start below its end, `reach` how far up a
        split has to reach to meet it.
        """
        hit = np.zeros(len(self._rank), np.bool_)
        within = int(starting[-1])  # the splits after these start above every interval
        needed = np.repeat(reach, np.diff(starting, prepend=0))
        np.greater_equal(self._reach[:within], needed, out=hit[:within])
        return hit[self._rank]


def ranks(order: Positions) -> Positions:
    """For each value its place in the order."""
    places = np.empty(len(order), np.intp)
    places[order] = np.arange(len(order))
    return places
