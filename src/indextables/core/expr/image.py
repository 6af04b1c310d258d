"""What a function makes of one argument: pieces on which it is monotone, and what lies outside of them.

Rows, preimage and range follow from this one definition; nothing is inverted by hand. Values are ordinals:
integers that sort as the values do (`core.states`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from indextables.core.states import (
    EMPTY,
    Cuts,
    Ordinals,
    States,
    union,
)

Array: TypeAlias = Any
"""A numpy array of ordinals: int64, or Python's integers where 64 bits are too few."""
Mask: TypeAlias = npt.NDArray[np.bool_]
Kind: TypeAlias = OneOf["null", "nan", "error"]
"""A state that is no value, or an error."""

Outcome: TypeAlias = Kind | int
"""What a state becomes: a value (its ordinal), or one of the states that are none."""

_MOST_INTERVALS: Final = 100_000
"""A preimage of more intervals is not searched for: each piece then counts as a whole."""


class Image(Protocol):
    """What a function of one argument does to it, all other arguments being constant."""

    @property
    def argument(self) -> Ordinals:
        """Returns the space of the argument."""
        ...

    @property
    def result(self) -> Ordinals:
        """Returns the space of the result."""
        ...

    @property
    def exact(self) -> bool:
        """Returns whether preimages hold no state too many."""
        ...

    def preimage(self, wanted: States) -> States:
        """Returns the states of the argument whose result may be one of these states."""
        ...

    def errors(self) -> States:
        """Returns the states of the argument that may raise an error."""
        ...


@dataclass(frozen=True, eq=False)
class Pieces:
    """A function that is monotone on each of its pieces, `first[i]` to `last[i]`, sorted and apart.

    >>> from indextables.core.states import space_of
    >>> from indextables.core.types import PrimitiveType
    >>> long = space_of(PrimitiveType("long"))
    >>> ends = np.array([-(2**62), 2000]), np.array([1999, 2**62])
    >>> Pieces(long, long, *ends, lambda x: abs(x - 2000)).preimage(States((0, 50))).cuts
    (1951, 2050)
    """

    argument: Ordinals
    result: Ordinals
    first: Array
    last: Array
    f: Callable[[Array], Array]
    null: Cuts = EMPTY
    """Values of the argument whose result is NULL."""
    nan: Cuts = EMPTY
    error: Cuts = EMPTY
    anything: Cuts = EMPTY
    """Values that nothing is known of: the result may be any state, or an error."""
    of_nan: Outcome = "nan"
    of_null: Outcome = "null"
    exact: bool = True
    inverse: Callable[[Array], Array] | None = None
    """The least value with a result, most likely: it is checked, and only saves a search."""

    def value(self, x: Array) -> Array:
        """Returns f, its argument and its results in 64 bits where these are enough for the types."""
        y = self.f(x.astype(self.first.dtype, copy=False))
        return y.astype(object if _is_wide(self.result) else np.int64, copy=False)

    def preimage(self, wanted: States) -> States:
        """Returns the states of the argument whose result is, or may be, one of these states."""
        found = [self.anything] if self.anything else []
        if wanted.cuts:
            whole = wanted.cuts == self.result.universe
            found.append(self._everywhere() if whole else self._values(wanted.cuts))
        if wanted.null:
            found.append(self.null)
        if wanted.nan:
            found.append(self.nan)
        return States(
            union(found) if found else EMPTY,
            null=_is_among(self.of_null, wanted),
            nan=self.argument.values.nan and _is_among(self.of_nan, wanted),
        )

    def errors(self) -> States:
        """Returns the states of the argument that raise an error, or may."""
        cuts = union([self.error, self.anything]) if self.error or self.anything else EMPTY
        nan = self.argument.values.nan and self.of_nan == "error"
        return States(cuts, null=self.of_null == "error", nan=nan)

    def _everywhere(self) -> Cuts:
        return _cuts(self.first, self.last)

    def _values(self, cuts: Cuts) -> Cuts:
        low, high = self._ends
        dtype = object if _is_wide(self.result) else np.int64
        # the cut 2**63 is no int64
        starts, mosts = np.array(cuts[::2], dtype), np.array([end - 1 for end in cuts[1::2]], dtype)
        # the intervals that a piece touches are neighbours
        begin = np.searchsorted(mosts, low, side="left")
        count = np.maximum(np.searchsorted(starts, high, side="right") - begin, 0)
        if (total := int(count.sum())) > _MOST_INTERVALS and len(starts) > 1:
            return _cuts(self.first[count > 0], self.last[count > 0])
        if not total:
            return EMPTY
        near = np.repeat(np.arange(len(low)), count)
        at = np.arange(total) - np.repeat(np.cumsum(count) - count - begin, count)
        return self._within(near, starts[at], mosts[at])

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Returns the least and the greatest value on each piece."""
        one, two = self._at_ends
        return np.minimum(one, two), np.maximum(one, two)

    @cached_property
    def _at_ends(self) -> tuple[Array, Array]:
        return self.value(self.first), self.value(self.last)

    def _within(self, near: Array, starts: Array, mosts: Array) -> Cuts:
        """Returns where f is from `starts[i]` to `mosts[i]` on the piece `near[i]`, which touches that."""
        one, two = (values[near] for values in self._at_ends)
        first, last, rising = self.first[near].copy(), self.last[near].copy(), two >= one
        some = np.ones(len(first), np.bool_)
        late = np.flatnonzero(np.where(rising, one < starts, one > mosts))
        if late.size:
            args = (values[late] for values in (first, last, rising, starts, mosts))
            first[late], none = self._least(*args)
            some[late] = ~none
        early = np.flatnonzero(np.where(rising, two > mosts, two < starts))
        if early.size:
            # what is beyond the wanted values, seen from their other side
            beyond = np.where(rising, mosts + 1, starts - 1)[early]
            stop, _ = self._least(self.first[near][early], last[early], rising[early], beyond, beyond)
            last[early] = stop - 1
        some &= first <= last
        first, last = first[some], last[some]
        order = np.argsort(first, kind="stable")
        return _cuts(first[order], last[order])

    def _least(
        self, first: Array, last: Array, rising: Mask, starts: Array, mosts: Array
    ) -> tuple[Array, Mask]:
        """Returns the least x from which on f has come to the wanted values, and whether there is none."""

        def begun(x: Array, of: Array) -> Any:
            y = self.value(x)
            return np.where(rising[of], y >= starts[of], y <= mosts[of])

        # a guess is checked, and only where it is wrong something is searched for
        guesses = [first + (starts - self.value(first))]
        if self.inverse is not None:
            guesses.append(self.inverse(np.where(rising, starts, mosts)))
        if len(first) > _FEW_PIECES:  # many pieces are often alike
            guesses.append(first + (_search(first[:1], last[:1], begun)[0] - first[:1]))
        every = np.arange(len(first))
        found, known = first.copy(), np.zeros(len(first), np.bool_)
        for guess in guesses:
            tried = np.clip(guess, first, last)
            before = np.where(tried > first, tried - 1, first)
            right = begun(tried, every) & ((tried == first) | ~begun(before, every))
            found, known = np.where(right & ~known, tried, found), known | right
        none, rest = np.zeros(len(first), np.bool_), np.flatnonzero(~known)
        if rest.size:
            found[rest], none[rest] = _search(first[rest], last[rest], lambda x, of: begun(x, rest[of]))
        return found, none

    # Rows and ranges.

    def rows(self, x: Array) -> tuple[Array, dict[Kind, Mask]]:
        """Returns the results for values of the argument, and which of them are no value."""
        x = x.astype(self.first.dtype, copy=False)
        outside: dict[Kind, Mask] = {}
        kinds: list[tuple[Kind, Cuts]] = [("null", self.null), ("nan", self.nan), ("error", self.error)]
        kinds.append(("error", self.anything))
        for kind, cuts in kinds:
            if cuts:
                hit = _inside(x, cuts)
                outside[kind] = outside[kind] | hit if kind in outside else hit
        if not outside:
            return self.value(x), outside
        # f is asked only where it is defined
        defined = ~np.logical_or.reduce(list(outside.values()))
        some = self.first[0] if len(self.first) else 0
        return self.value(np.where(defined, x, some)), outside

    def ranges(self, low: Array, high: Array) -> tuple[Array, Array, Mask]:
        """Returns the least and the greatest result between two arguments, and whether there is any."""
        if not len(self.first):
            return low, high, np.zeros(len(low), np.bool_)
        low, high = (end.astype(self.first.dtype, copy=False) for end in (low, high))
        one = np.minimum(np.searchsorted(self.last, low), len(self.last) - 1)
        two = np.maximum(np.searchsorted(self.first, high, side="right") - 1, 0)
        begin, end = np.maximum(low, self.first[one]), np.minimum(high, self.last[two])
        there = (one <= two) & (begin <= end)
        begin, end = np.where(there, begin, self.first[one]), np.where(there, end, self.first[one])
        many, two = there & (one < two), np.where(there, two, one)
        ends = [self.value(begin), self.value(end)]
        ends += [
            self.value(np.where(many, self.last[one], begin)),
            self.value(np.where(many, self.first[two], end)),
        ]
        least, most = np.minimum.reduce(ends), np.maximum.reduce(ends)
        inner = many & (two - one > 1)
        if inner.any():
            below, above = self._between(one[inner] + 1, two[inner] - 1)
            least[inner] = np.minimum(least[inner], below)
            most[inner] = np.maximum(most[inner], above)
        return least, most, there

    def _between(self, one: Array, two: Array) -> tuple[Array, Array]:
        """Returns the least and greatest value on the pieces from one to two, by a sparse table."""
        level = np.log2(two - one + 1).astype(np.int64)
        least, most = self._table
        start = two - (1 << level) + 1
        below = np.minimum(least[level, one], least[level, start])
        return below, np.maximum(most[level, one], most[level, start])

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        least, most = ([end] for end in self._ends)
        width, count = 1, len(self.first)
        while 2 * width <= count:
            for rows, join in ((least, np.minimum), (most, np.maximum)):
                row = rows[-1].copy()
                row[:-width] = join(rows[-1][:-width], rows[-1][width:])
                rows.append(row)
            width *= 2
        return np.array(least), np.array(most)


def _is_wide(space: Ordinals) -> bool:
    """Returns whether 64 bits are too few for the values of a type."""
    return bool(space.kind == "decimal" and space.universe[1] > 2**63)


_FEW_PIECES: Final = 64
_TRIED_AT_ONCE: Final = 128
"""A call of numpy takes no longer for this many values than for one."""


def _search(first: Array, last: Array, holds: Callable[[Array, Array], Mask]) -> tuple[Array, Mask]:
    """Returns for each pair the least x from first to last that holds, and whether there is none.

    Where one holds, all after it must, up to the last. `holds` is given each x with the number of its pair.
    A few pairs are not halved but cut into many parts at a time.
    """
    low, high, count = first, last, len(first)
    parts = max(2, _TRIED_AT_ONCE // count)
    steps, row = np.arange(1, parts), np.arange(count)
    of = np.repeat(row, parts - 1)
    while (low < high).any():
        tried = _places_between(low, high, steps, parts)
        below = parts - 1 - holds(tried.ravel(), of).reshape(tried.shape).sum(axis=1)
        found, passed = below < parts - 1, below > 0
        high = np.where(found, tried[row, np.minimum(below, parts - 2)], high)
        low = np.where(passed, np.minimum(tried[row, np.maximum(below - 1, 0)] + 1, high), low)
    return low, ~holds(low, row)


def _places_between(low: Array, high: Array, steps: Array, parts: int) -> Array:
    """Returns for each pair the places that cut what lies between its two into these many parts."""
    if low.dtype == object:
        return low[:, None] + (high - low)[:, None] * steps // parts
    # the distance of two int64 is an uint64; what is added to the lower one wraps to the right place
    size, turns = (high - low).view(np.uint64)[:, None], steps.astype(np.uint64)
    if parts == 2:
        return low[:, None] + (size >> np.uint64(1)).view(np.int64)
    whole, rest = size // np.uint64(parts), size % np.uint64(parts)
    return low[:, None] + (whole * turns + rest * turns // np.uint64(parts)).view(np.int64)


def first_where(first: Array, last: Array, holds: Callable[[Array], Mask]) -> list[int]:
    """Returns for each pair the least x from first to last that holds, else the one after the last."""
    low, none = _search(first, last, lambda x, _: holds(x))
    return [int(x) + int(missing) for x, missing in zip(low.tolist(), none.tolist(), strict=True)]


def _cuts(first: Array, last: Array) -> Cuts:
    """Returns sorted intervals, given by their ends, as cuts; those that touch are one."""
    if not len(first):
        return EMPTY
    apart = np.flatnonzero(first[1:] - 1 != last[:-1])
    starts = first[np.append([0], apart + 1)].tolist()
    ends = last[np.append(apart, [len(last) - 1])].tolist()
    return tuple(cut for start, end in zip(starts, ends, strict=True) for cut in (start, end + 1))


def _is_among(outcome: Outcome, wanted: States) -> bool:
    if isinstance(outcome, str):
        return (outcome == "null" and wanted.null) or (outcome == "nan" and wanted.nan)
    return any(
        start <= outcome < end for start, end in zip(wanted.cuts[::2], wanted.cuts[1::2], strict=True)
    )


def _inside(x: Array, cuts: Cuts) -> Mask:
    hit = np.zeros(len(x), np.bool_)
    for start, end in zip(cuts[::2], cuts[1::2], strict=True):
        hit |= (x >= start) & (x <= end - 1)
    return hit


def reaches(low: Array, high: Array, cuts: Cuts) -> Mask:
    """Returns whether a value between two ordinals is in the set."""
    hit = np.zeros(len(low), np.bool_)
    for start, end in zip(cuts[::2], cuts[1::2], strict=True):
        hit |= (low <= end - 1) & (high >= start)
    return hit
