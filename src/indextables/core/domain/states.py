"""Sets of values as sorted cuts: exact union, intersection and complement over any total order.

A *cut* is a place between two neighbouring values. A set is a flat tuple of cuts
`(start, end, start, end, …)`, strictly increasing; each pair holds what lies between its two cuts.
Because every set in one order is built from the same cuts, two sets that hold the same values are
equal tuples: (1, 2) over integers *is* the empty set.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, islice
from operator import lt
from typing import Any, Final, TypeAlias, final

Cut: TypeAlias = Any
Cuts: TypeAlias = tuple[Cut, ...]
EMPTY: Final[Cuts] = ()


@final
class _Extreme:
    """A cut beyond every other: comparable with anything, equal only to itself."""

    __slots__ = ("_above",)

    def __init__(self, *, above: bool) -> None:
        self._above = above

    def __lt__(self, other: object) -> bool:
        return not self._above and other is not self

    def __gt__(self, other: object) -> bool:
        return self._above and other is not self

    def __le__(self, other: object) -> bool:
        return not self > other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __repr__(self) -> str:
        return "+∞" if self._above else "-∞"


BOTTOM: Final = _Extreme(above=False)
TOP: Final = _Extreme(above=True)


def union(sets: Sequence[Cuts]) -> Cuts:
    """What at least one of the sets holds.

    >>> union([(1, 3), (3, 5), (9, 10)])
    (1, 5, 9, 10)
    """
    filled = [cuts for cuts in sets if cuts]
    return _covered(filled, 1) if filled else EMPTY


def intersection(sets: Sequence[Cuts]) -> Cuts:
    """What all of the sets hold; there must be one at least.

    >>> intersection([(1, 6), (0, 2, 4, 9)])
    (1, 2, 4, 6)
    """
    return _covered(sets, len(sets)) if all(sets) else EMPTY


def complement(cuts: Cuts, universe: Cuts) -> Cuts:
    """What the universe (one interval) holds and the set does not.

    >>> complement((0, 2, 4, 9), (0, 9))
    (2, 4)
    """
    start, end = universe
    inner = cuts[1:] if cuts and cuts[0] == start else (start, *cuts)
    return inner[:-1] if inner[-1] == end else (*inner, end)


def holds(cuts: Cuts, below: Cut) -> bool:
    """Whether the value right above the cut `below` is in the set."""
    return bisect_right(cuts, below) % 2 == 1


def _covered(sets: Sequence[Cuts], needed: int) -> Cuts:
    """Where at least `needed` of the sets lie over each other: one sweep over all cuts at once."""
    if len(sets) == 1:
        return sets[0]
    starts = sorted(chain.from_iterable(cuts[::2] for cuts in sets))
    ends = sorted(chain.from_iterable(cuts[1::2] for cuts in sets))
    if needed == 1 and all(map(lt, ends, islice(starts, 1, None))):
        return tuple(chain.from_iterable(zip(starts, ends, strict=True)))  # nothing touches: a long IN
    found: list[Cut] = []
    depth = opened = closed = 0
    while closed < len(ends):
        # All that starts or ends at one cut counts together, so that touching intervals merge.
        cut = min(starts[opened], ends[closed]) if opened < len(starts) else ends[closed]
        before = depth >= needed
        while opened < len(starts) and starts[opened] == cut:
            opened, depth = opened + 1, depth + 1
        while closed < len(ends) and ends[closed] == cut:
            closed, depth = closed + 1, depth - 1
        if before != (depth >= needed):
            found.append(cut)
    return tuple(found)
